#include "graph/ir/name_table.h"

#include <algorithm>
#include <cstring>

namespace halftone {
namespace {

constexpr size_t kChunkBytes = 16 << 10;

// Where a name splits, so that its parent is what stands before: at the last
// dot, unless there are too many or nothing stands before it.
size_t SplitAt(absl::string_view name, int most_dots) {
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || dot == 0 ||
      std::count(name.begin(), name.end(), '.') > most_dots) {
    return absl::string_view::npos;
  }
  return dot;
}

bool IsOneWord(absl::string_view suffix) {
  return !suffix.empty() && suffix[0] == '.' &&
         suffix.find('.', 1) == absl::string_view::npos;
}

}  // namespace

NameId NameTable::Intern(absl::string_view name) {
  const size_t dot = SplitAt(name, kMostDots);
  if (dot == absl::string_view::npos) return InternRoot(name);
  return Child(Intern(name.substr(0, dot)), name.substr(dot));
}

NameId NameTable::Append(NameId base, absl::string_view suffix) {
  const Entry& entry = names_[base.index()];
  if (IsOneWord(suffix) && entry.dots < kMostDots && entry.size > 0) {
    return Child(base, suffix);
  }
  return Intern(std::string(name(base)).append(suffix.data(), suffix.size()));
}

NameId NameTable::Find(absl::string_view name) const {
  const size_t dot = SplitAt(name, kMostDots);
  if (dot == absl::string_view::npos) return FindRoot(name);
  const NameId parent = Find(name.substr(0, dot));
  if (!parent.valid()) return NameId();
  const NameId listed = FindListed(parent, name.substr(dot));
  if (listed.valid() || names_[parent.index()].listed < kMostListed) {
    return listed;
  }
  return FindRoot(name);
}

NameId NameTable::Add(absl::string_view name, int dots) {
  const NameId id(names_.size());
  Entry& entry = names_.Add();
  char* const text = Room(name.size());
  if (!name.empty()) std::memcpy(text, name.data(), name.size());
  entry.text = text;
  entry.size = static_cast<uint32_t>(name.size());
  entry.dots = static_cast<uint8_t>(std::min(dots, kMostDots + 1));
  return id;
}

NameId NameTable::InternRoot(absl::string_view name) {
  const Wanted wanted = Want(name);
  const auto it = roots_.lazy_emplace(wanted, [&](const auto& construct) {
    const auto dots = std::count(name.begin(), name.end(), '.');
    construct(Known{Add(name, static_cast<int>(dots)), wanted.hash});
  });
  return it->id;
}

NameId NameTable::FindRoot(absl::string_view name) const {
  const auto it = roots_.find(Want(name));
  return it == roots_.end() ? NameId() : it->id;
}

NameId NameTable::FindListed(NameId parent, absl::string_view suffix) const {
  const size_t begin = names_[parent.index()].size;
  for (NameId id = names_[parent.index()].child; id.valid();
       id = names_[id.index()].sibling) {
    if (name(id).size() == begin + suffix.size() &&
        name(id).substr(begin) == suffix) {
      return id;
    }
  }
  return NameId();
}

NameId NameTable::Child(NameId parent, absl::string_view suffix) {
  const NameId known = FindListed(parent, suffix);
  if (known.valid()) return known;
  text_.assign(name(parent).data(), name(parent).size());
  text_.append(suffix.data(), suffix.size());
  if (names_[parent.index()].listed == kMostListed) return InternRoot(text_);
  const NameId made = Add(text_, names_[parent.index()].dots + 1);
  Entry& entry = names_[parent.index()];
  names_[made.index()].sibling = entry.child;
  entry.child = made;
  ++entry.listed;
  return made;
}

char* NameTable::Room(size_t size) {
  if (size > kChunkBytes / 4) {
    chunks_.emplace_back(new char[size]);
    return chunks_.back().get();
  }
  if (size > left_) {
    chunks_.emplace_back(new char[kChunkBytes]);
    free_ = chunks_.back().get();
    left_ = kChunkBytes;
  }
  char* const room = free_;
  free_ += size;
  left_ -= size;
  return room;
}

}  // namespace halftone
