// Interned names: each string once, an id for comparing and hashing.
#ifndef HALFTONE_GRAPH_IR_NAME_TABLE_H_
#define HALFTONE_GRAPH_IR_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "graph/ir/chunked_vector.h"
#include "graph/ir/ids.h"

namespace halftone {

// Names are never removed and never move: about 25 bytes each beside their
// characters.
//
// Passes name what they make after what they found: x.grad, x.cast_fp16, x.1.
// Such a name hangs below the one it is made of, where it is found without a
// look at a table of all names, which in a large program is a cache miss or
// two. So that each text has one place, all names split at their last dot, and
// an interned name has all its beginnings interned.
class NameTable {
 public:
  NameTable() : roots_(0, Hash(), Equal{&names_}) {}
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  NameId Intern(absl::string_view name);
  // The name of `base` with the suffix behind it.
  NameId Append(NameId base, absl::string_view suffix);
  // An invalid id if the name was never interned.
  NameId Find(absl::string_view name) const;
  absl::string_view name(NameId id) const {
    const Entry& entry = names_[id.index()];
    return absl::string_view(entry.text, entry.size);
  }
  int32_t size() const { return names_.size(); }

 private:
  // A name with more dots does not split: beginnings cost memory.
  static constexpr int kMostDots = 8;
  // Children beyond these are in the table of roots.
  static constexpr int kMostListed = 8;

  struct Entry {
    const char* text = nullptr;
    uint32_t size = 0;
    uint8_t dots = 0;    // kMostDots + 1: as many or more
    uint8_t listed = 0;  // how many children are in the list
    uint16_t begun = 0;  // the bits of all children's suffixes: BitOf
    NameId child;        // the last one made
    NameId sibling;      // the one made before it
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
      const Entry& entry = (*names)[a.id.index()];
      return a.hash == b.hash &&
             absl::string_view(entry.text, entry.size) == b.text;
    }
  };

  static Wanted Want(absl::string_view name) {
    return {name, static_cast<uint32_t>(absl::Hash<absl::string_view>()(name))};
  }
  // A new name: what it begins with, and the rest.
  NameId Add(absl::string_view begin, absl::string_view end, int dots);
  NameId InternRoot(absl::string_view name);
  NameId FindRoot(absl::string_view name) const;
  // `suffix` is a dot and a word without one.
  NameId Child(NameId parent, absl::string_view suffix);
  NameId FindChild(NameId parent, absl::string_view suffix) const;
  // Where a child may have the suffix, as the bits say.
  NameId SearchChildren(const Entry& parent, absl::string_view suffix) const;
  // The room for `size` characters, which never move.
  char* Room(size_t size);

  Names names_;
  absl::flat_hash_set<Known, Hash, Equal> roots_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  size_t left_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_NAME_TABLE_H_
