// What a block's names denote: ids by NameId.
#ifndef HALFTONE_GRAPH_IR_NAME_MAP_H_
#define HALFTONE_GRAPH_IR_NAME_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "graph/ir/ids.h"

namespace halftone {

// A few names, as a fusion's body has, lie in a list. More lie in pages by the
// name's index: names are interned in the order in which they are made, so that
// a block's own are close together.
template <typename Id>
class NameMap {
 public:
  // An invalid id if there is none.
  Id Find(NameId name) const {
    if (pages_.empty()) {
      for (const auto& [known, id] : few_) {
        if (known == name) return id;
      }
      return Id();
    }
    const size_t page = PageOf(name);  // far behind all if there is no name
    if (page >= pages_.size() || pages_[page] == nullptr) return Id();
    return (*pages_[page])[PlaceOf(name)];
  }
  // False if there is one, which stays.
  bool Insert(NameId name, Id id) {
    if (!pages_.empty()) {
      Id& known = At(name);
      if (known.valid()) return false;
      known = id;
      return true;
    }
    for (const auto& entry : few_) {
      if (entry.first == name) return false;
    }
    few_.emplace_back(name, id);
    if (few_.size() > kFew) Spread();
    return true;
  }
  void Erase(NameId name) {
    if (!pages_.empty()) {
      At(name) = Id();
      return;
    }
    for (auto& entry : few_) {
      if (entry.first != name) continue;
      entry = few_.back();
      few_.pop_back();
      return;
    }
  }

 private:
  void Spread() {
    for (const auto& [known, id] : few_) At(known) = id;
    few_ = {};
  }
  static constexpr size_t kFew = 32;
  static constexpr uint32_t kPageSize = 128;
  using Page = std::array<Id, kPageSize>;

  static size_t PageOf(NameId name) {
    return static_cast<uint32_t>(name.index()) / kPageSize;
  }
  static size_t PlaceOf(NameId name) {
    return static_cast<uint32_t>(name.index()) % kPageSize;
  }
  Id& At(NameId name) {
    const size_t page = PageOf(name);
    if (page >= pages_.size()) pages_.resize(page + page / 2 + 1);
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<Page>();
    return (*pages_[page])[PlaceOf(name)];
  }

  absl::InlinedVector<std::pair<NameId, Id>, 4> few_;  // while there are few
  std::vector<std::unique_ptr<Page>> pages_;           // since then
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_NAME_MAP_H_
