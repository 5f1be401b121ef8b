#include "graph/ir/name_table.h"

#include <cstring>

namespace halftone {
namespace {
constexpr size_t kChunkBytes = 16 << 10;
}  // namespace

NameId NameTable::Intern(absl::string_view name) {
  const Wanted wanted = Want(name);
  const auto it = ids_.lazy_emplace(wanted, [&](const auto& construct) {
    const NameId id(names_.size());
    names_.Add().text = Store(name);
    construct(Known{id, wanted.hash});
  });
  return it->id;
}

NameId NameTable::Append(NameId base, absl::string_view suffix) {
  const absl::string_view text = name(base);
  const NameId last = names_[base.index()].appended;
  // All that were made of it begin with it.
  if (last.valid() && name(last).substr(text.size()) == suffix) return last;
  appended_.assign(text.data(), text.size());
  appended_.append(suffix.data(), suffix.size());
  const NameId made = Intern(appended_);
  names_[base.index()].appended = made;
  return made;
}

NameId NameTable::Find(absl::string_view name) const {
  const auto it = ids_.find(Want(name));
  return it == ids_.end() ? NameId() : it->id;
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
