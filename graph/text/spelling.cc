#include "graph/text/spelling.h"

#include <iterator>

namespace halftone {
namespace text {
namespace {

// All tables are by the enumerators' values.
constexpr absl::string_view kCellKinds[] = {
    "parameter", "statistic", "slot",    "scaler",
    "clock",     "derived",   "average", "accumulator"};
static_assert(std::size(kCellKinds) ==
              static_cast<size_t>(CellKind::kAccumulator) + 1);
constexpr absl::string_view kCommits[] = {"applied", "always"};
constexpr absl::string_view kSpreads[] = {"replicated", "sharded", "per_rank"};
constexpr InitSpelling kInits[] = {
    {"", 0},
    {"constant", 1},
    {"uniform", 2},
    {"normal", 2},
    {"truncated_normal", 2},
    {"xavier_uniform", 1},
    {"xavier_normal", 1},
    {"kaiming_uniform", 1},
    {"kaiming_normal", 1},
};
static_assert(std::size(kInits) ==
              static_cast<size_t>(Initializer::Kind::kKaimingNormal) + 1);

template <typename Enum, size_t n>
std::optional<Enum> Find(const absl::string_view (&words)[n],
                         absl::string_view name) {
  for (size_t i = 0; i < n; ++i) {
    if (words[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

absl::string_view Name(CellKind kind) {
  return kCellKinds[static_cast<size_t>(kind)];
}
absl::string_view Name(Commit commit) {
  return kCommits[static_cast<size_t>(commit)];
}
absl::string_view Name(Spread spread) {
  return kSpreads[static_cast<size_t>(spread)];
}

std::optional<CellKind> CellKindFromName(absl::string_view name) {
  return Find<CellKind>(kCellKinds, name);
}
std::optional<Commit> CommitFromName(absl::string_view name) {
  return Find<Commit>(kCommits, name);
}
std::optional<Spread> SpreadFromName(absl::string_view name) {
  return Find<Spread>(kSpreads, name);
}

const InitSpelling& SpellingOf(Initializer::Kind kind) {
  return kInits[static_cast<size_t>(kind)];
}

std::optional<Initializer::Kind> InitFromName(absl::string_view name) {
  for (size_t i = 1; i < std::size(kInits); ++i) {
    if (kInits[i].word == name) return static_cast<Initializer::Kind>(i);
  }
  return std::nullopt;
}

std::vector<std::string> CellKindNames() {
  return std::vector<std::string>(std::begin(kCellKinds), std::end(kCellKinds));
}

std::vector<std::string> InitNames() {
  std::vector<std::string> names;
  for (size_t i = 1; i < std::size(kInits); ++i) {
    names.emplace_back(kInits[i].word);
  }
  return names;
}

}  // namespace text
}  // namespace halftone
