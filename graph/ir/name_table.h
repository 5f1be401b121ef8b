// Interned names: each string once, an id for comparing and hashing.
#ifndef HALFTONE_GRAPH_IR_NAME_TABLE_H_
#define HALFTONE_GRAPH_IR_NAME_TABLE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "graph/ir/chunked_vector.h"
#include "graph/ir/ids.h"

namespace halftone {

// About 35 bytes a name beside its characters. Names are never removed and
// never move.
class NameTable {
 public:
  NameTable() : ids_(0, Hash{&names_}, Equal{&names_}) {}
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  NameId Intern(absl::string_view name);
  // An invalid id if the name was never interned.
  NameId Find(absl::string_view name) const;
  absl::string_view name(NameId id) const { return names_[id.index()].text; }
  int32_t size() const { return names_.size(); }

 private:
  // With its hash, so that the set grows without reading the characters.
  struct Entry {
    absl::string_view text;
    size_t hash = 0;
  };
  using Names = ChunkedVector<Entry>;
  // The set holds ids alone and looks their strings up.
  struct Hash {
    using is_transparent = void;
    const Names* names;
    size_t operator()(absl::string_view s) const {
      return absl::Hash<absl::string_view>()(s);
    }
    size_t operator()(NameId id) const { return (*names)[id.index()].hash; }
  };
  struct Equal {
    using is_transparent = void;
    const Names* names;
    absl::string_view View(absl::string_view s) const { return s; }
    absl::string_view View(NameId id) const {
      return (*names)[id.index()].text;
    }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return View(a) == View(b);
    }
  };

  absl::string_view Store(absl::string_view name);

  Names names_;
  absl::flat_hash_set<NameId, Hash, Equal> ids_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  size_t left_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_NAME_TABLE_H_
