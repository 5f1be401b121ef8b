// Finds free names of the form base, base.1, base.2 ...
#ifndef HALFTONE_GRAPH_IR_UNIQUE_NAMES_H_
#define HALFTONE_GRAPH_IR_UNIQUE_NAMES_H_

#include <cstdint>
#include <functional>
#include <iterator>
#include <queue>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "graph/ir/ids.h"
#include "graph/ir/name_table.h"

namespace halftone {

// Tries the first few one by one, and remembers per base with more names where
// to go on, so that n names of one base cost O(n log n). What it returns
// depends on the names in use alone, not on the history: a program that was
// printed and read back gets the same names.
class UniqueNames {
 public:
  // `base` itself or `base.n` with the smallest n >= 1 that is not in use.
  NameId Find(NameId base, NameTable& names,
              absl::FunctionRef<bool(NameId)> in_use);
  // To be called for each name that goes out of use.
  void Release(NameId name, const NameTable& names);

 private:
  static constexpr absl::string_view kFirst[] = {".1", ".2", ".3", ".4"};
  static constexpr int32_t kTried = std::size(kFirst);
  struct Suffixes {
    // kTried+1 .. next-1 were all seen in use; those released since are in
    // `released`.
    int32_t next = kTried + 1;
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<int32_t>>
        released;
  };
  absl::flat_hash_map<NameId, Suffixes> suffixes_;  // by base
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_UNIQUE_NAMES_H_
