// What a block's names denote: ids by NameId.
#ifndef HALFTONE_GRAPH_IR_NAME_MAP_H_
#define HALFTONE_GRAPH_IR_NAME_MAP_H_

#include <array>
#include <memory>
#include <vector>

#include "graph/ir/ids.h"

namespace halftone {

// Pages of ids, by the name's index: names are interned in the order in which
// they are made, so that a block's own lie together. A page exists once it
// holds a name: a fusion's body has a few of them, whatever the program's size.
template <typename Id>
class NameMap {
 public:
  // An invalid id if there is none.
  Id Find(NameId name) const {
    const size_t page = PageOf(name);
    if (!name.valid() || page >= pages_.size() || pages_[page] == nullptr) {
      return Id();
    }
    return (*pages_[page])[name.index() % kPageSize];
  }
  void Set(NameId name, Id id) { At(name) = id; }
  void Erase(NameId name) { At(name) = Id(); }

 private:
  static constexpr int kPageSize = 128;
  using Page = std::array<Id, kPageSize>;

  static size_t PageOf(NameId name) {
    return static_cast<size_t>(name.index()) / kPageSize;
  }
  Id& At(NameId name) {
    const size_t page = PageOf(name);
    if (page >= pages_.size()) pages_.resize(page + page / 2 + 1);
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<Page>();
    return (*pages_[page])[name.index() % kPageSize];
  }

  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_NAME_MAP_H_
