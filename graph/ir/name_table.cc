#include "graph/ir/name_table.h"

#include <cstring>

namespace halftone {
namespace {
constexpr size_t kChunkBytes = 16 << 10;
}  // namespace

NameId NameTable::Intern(absl::string_view name) {
  const auto it = ids_.find(name);
  if (it != ids_.end()) return *it;
  const NameId id(static_cast<int32_t>(names_.size()));
  names_.Add() = Store(name);
  ids_.insert(id);
  return id;
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
