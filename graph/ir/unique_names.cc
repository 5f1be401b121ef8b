#include "graph/ir/unique_names.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace halftone {

NameId UniqueNames::Find(NameId base, NameTable& names,
                         absl::FunctionRef<bool(NameId)> in_use) {
  if (!in_use(base)) return base;
  for (const absl::string_view suffix : kFirst) {
    const NameId name = names.Append(base, suffix);
    if (!in_use(name)) return name;
  }
  const auto with = [&](int32_t n) {
    return names.Append(base, absl::StrCat(".", n));
  };
  Suffixes& suffixes = suffixes_[base];
  while (!suffixes.released.empty()) {
    const NameId name = with(suffixes.released.top());
    if (!in_use(name)) return name;
    suffixes.released.pop();
  }
  while (true) {
    const NameId name = with(suffixes.next);
    if (!in_use(name)) return name;
    ++suffixes.next;
  }
}

void UniqueNames::Release(NameId id, const NameTable& names) {
  if (suffixes_.empty()) return;
  const absl::string_view name = names.name(id);
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos) return;
  const absl::string_view digits = name.substr(dot + 1);
  int32_t n = 0;
  // Only what StrCat writes: "x.01" is not a name of ours.
  if (digits.empty() || digits[0] < '1' || digits[0] > '9' ||
      !absl::SimpleAtoi(digits, &n) || n <= kTried) {
    return;
  }
  const auto it = suffixes_.find(names.Find(name.substr(0, dot)));
  if (it != suffixes_.end() && n < it->second.next) {
    it->second.released.push(n);
  }
}

}  // namespace halftone
