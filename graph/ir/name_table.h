// Interned names: each string once, an id for comparing and hashing.
#ifndef HALFTONE_GRAPH_IR_NAME_TABLE_H_
#define HALFTONE_GRAPH_IR_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "graph/ir/chunked_vector.h"
#include "graph/ir/ids.h"

namespace halftone {

// About 40 bytes a name beside its characters. Names are never removed and
// never move.
class NameTable {
 public:
  NameTable() : ids_(0, Hash(), Equal{&names_}) {}
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  NameId Intern(absl::string_view name);
  // The name of `base` with the suffix behind it. Asked for again, as passes
  // do that name an op and its value alike, it costs no look-up.
  NameId Append(NameId base, absl::string_view suffix);
  // An invalid id if the name was never interned.
  NameId Find(absl::string_view name) const;
  absl::string_view name(NameId id) const { return names_[id.index()].text; }
  int32_t size() const { return names_.size(); }

 private:
  struct Entry {
    absl::string_view text;
    NameId appended;  // what Append last made of it
  };
  using Names = ChunkedVector<Entry>;
  // The set holds no characters, but hashes: it grows, and passes over most
  // other names, without reading the texts.
  struct Known {
    NameId id;
    uint32_t hash = 0;
  };
  struct Wanted {
    absl::string_view text;
    uint32_t hash = 0;
  };
  struct Hash {
    using is_transparent = void;
    template <typename Name>
    size_t operator()(const Name& name) const {
      // The set takes its bits from both ends.
      return name.hash * size_t{0x9e3779b97f4a7c15u};
    }
  };
  struct Equal {
    using is_transparent = void;
    const Names* names;
    bool operator()(const Known& a, const Known& b) const {
      return a.id == b.id;
    }
    bool operator()(const Known& a, const Wanted& b) const {
      return a.hash == b.hash && (*names)[a.id.index()].text == b.text;
    }
  };

  static Wanted Want(absl::string_view name) {
    return {name, static_cast<uint32_t>(absl::Hash<absl::string_view>()(name))};
  }
  absl::string_view Store(absl::string_view name);

  Names names_;
  absl::flat_hash_set<Known, Hash, Equal> ids_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::string appended_;  // Append's text
  char* free_ = nullptr;
  size_t left_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_NAME_TABLE_H_
