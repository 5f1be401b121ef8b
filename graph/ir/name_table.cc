#include "graph/ir/name_table.h"

#include <cstring>

namespace halftone {
namespace {
constexpr size_t kChunkBytes = 16 << 10;
}  // namespace

NameId NameTable::Intern(absl::string_view name) {
  const auto it = ids_.lazy_emplace(name, [&](const auto& construct) {
    const NameId id(names_.size());
    Entry& entry = names_.Add();
    entry.text = Store(name);
    entry.hash = ids_.hash_function()(name);
    construct(id);
  });
  return *it;
}

NameId NameTable::Find(absl::string_view name) const {
  const auto it = ids_.find(name);
  return it == ids_.end() ? NameId() : *it;
}

absl::string_view NameTable::Store(absl::string_view name) {
  if (name.empty()) return "";
  char* place;
  if (name.size() > kChunkBytes / 4) {
    chunks_.emplace_back(new char[name.size()]);
    place = chunks_.back().get();
  } else {
    if (name.size() > left_) {
      chunks_.emplace_back(new char[kChunkBytes]);
      free_ = chunks_.back().get();
      left_ = kChunkBytes;
    }
    place = free_;
    free_ += name.size();
    left_ -= name.size();
  }
  std::memcpy(place, name.data(), name.size());
  return absl::string_view(place, name.size());
}

}  // namespace halftone
