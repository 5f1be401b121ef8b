#include "graph/ir/name_table.h"

#include <algorithm>
#include <cstring>
#include <string>

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

// One of sixteen, so that a name knows most of the suffixes that none of its
// children has without a look at these: they are far apart.
inline uint16_t BitOf(absl::string_view suffix) {
  const uint32_t mixed = static_cast<uint8_t>(suffix[suffix.size() / 2]) * 29 +
                         static_cast<uint8_t>(suffix.back()) * 23 +
                         static_cast<uint32_t>(suffix.size());
  return static_cast<uint16_t>(1u << (mixed * 0x9e3779b1u >> 28));
}

// Whether one of eight characters is a dot: the lowest one that is takes a
// borrow into its top bit, which it has not.
inline bool HasDot(uint64_t eight) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  const uint64_t rest = eight ^ kOnes * '.';
  return ((rest - kOnes) & ~rest & kOnes << 7) != 0;
}

bool IsOneWord(absl::string_view suffix) {
  if (suffix.empty() || suffix[0] != '.') return false;
  size_t i = 1;
  for (; i + sizeof(uint64_t) <= suffix.size(); i += sizeof(uint64_t)) {
    uint64_t eight;
    std::memcpy(&eight, suffix.data() + i, sizeof(eight));
    if (HasDot(eight)) return false;
  }
  for (; i < suffix.size(); ++i) {
    if (suffix[i] == '.') return false;
  }
  return true;
}

std::string Joined(absl::string_view begin, absl::string_view end) {
  return std::string(begin).append(end.data(), end.size());
}

}  // namespace

NameId NameTable::Intern(absl::string_view name) {
  const size_t dot = SplitAt(name, kMostDots);
  if (dot == absl::string_view::npos) return InternRoot(name);
  return Child(Intern(name.substr(0, dot)), name.substr(dot));
}

NameId NameTable::Append(NameId base, absl::string_view suffix) {
  const Entry& entry = names_[base.index()];
  if (entry.dots < kMostDots && entry.size > 0 && IsOneWord(suffix)) {
    return Child(base, suffix);
  }
  return Intern(Joined(name(base), suffix));
}

NameId NameTable::Find(absl::string_view name) const {
  const size_t dot = SplitAt(name, kMostDots);
  if (dot == absl::string_view::npos) return FindRoot(name);
  const NameId parent = Find(name.substr(0, dot));
  return parent.valid() ? FindChild(parent, name.substr(dot)) : NameId();
}

NameId NameTable::Add(absl::string_view begin, absl::string_view end,
                      int dots) {
  const NameId id(names_.size());
  Entry& entry = names_.Add();
  const size_t size = begin.size() + end.size();
  char* const text = Room(size);
  std::copy(end.begin(), end.end(),
            std::copy(begin.begin(), begin.end(), text));
  entry.text = text;
  entry.size = static_cast<uint32_t>(size);
  entry.dots = static_cast<uint8_t>(std::min(dots, kMostDots + 1));
  return id;
}

NameId NameTable::InternRoot(absl::string_view name) {
  const Wanted wanted = Want(name);
  const auto it = roots_.lazy_emplace(wanted, [&](const auto& construct) {
    const auto dots = std::count(name.begin(), name.end(), '.');
    construct(Known{Add(name, "", static_cast<int>(dots)), wanted.hash});
  });
  return it->id;
}

NameId NameTable::FindRoot(absl::string_view name) const {
  const auto it = roots_.find(Want(name));
  return it == roots_.end() ? NameId() : it->id;
}

NameId NameTable::SearchChildren(const Entry& parent,
                                 absl::string_view suffix) const {
  NameId id = parent.child;
  while (id.valid()) {
    const Entry& entry = names_[id.index()];
    if (entry.size == parent.size + suffix.size() &&
        absl::string_view(entry.text + parent.size, suffix.size()) == suffix) {
      return id;
    }
    id = entry.sibling;
  }
  if (parent.listed < kMostListed) return NameId();
  return FindRoot(Joined({parent.text, parent.size}, suffix));
}

NameId NameTable::FindChild(NameId parent, absl::string_view suffix) const {
  const Entry& entry = names_[parent.index()];
  return (entry.begun & BitOf(suffix)) == 0 ? NameId()
                                            : SearchChildren(entry, suffix);
}

NameId NameTable::Child(NameId parent, absl::string_view suffix) {
  Entry& entry = names_[parent.index()];  // names never move
  const uint16_t bit = BitOf(suffix);
  if ((entry.begun & bit) != 0) {
    const NameId known = SearchChildren(entry, suffix);
    if (known.valid()) return known;
  }
  entry.begun |= bit;
  const absl::string_view begin(entry.text, entry.size);
  if (entry.listed == kMostListed) return InternRoot(Joined(begin, suffix));
  const NameId made = Add(begin, suffix, entry.dots + 1);
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
