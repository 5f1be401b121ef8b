// The words by which the text form spells what cells are.
#ifndef HALFTONE_GRAPH_TEXT_SPELLING_H_
#define HALFTONE_GRAPH_TEXT_SPELLING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {
namespace text {

absl::string_view Name(CellKind kind);
absl::string_view Name(Commit commit);
absl::string_view Name(Spread spread);
std::optional<CellKind> CellKindFromName(absl::string_view name);
std::optional<Commit> CommitFromName(absl::string_view name);
std::optional<Spread> SpreadFromName(absl::string_view name);

// `init=uniform(a, b)`: word and number of arguments; no word for kNone.
struct InitSpelling {
  absl::string_view word;
  int arguments;
};
const InitSpelling& SpellingOf(Initializer::Kind kind);
std::optional<Initializer::Kind> InitFromName(absl::string_view name);

// For "nearest" hints.
std::vector<std::string> CellKindNames();
std::vector<std::string> InitNames();

}  // namespace text
}  // namespace halftone

#endif  // HALFTONE_GRAPH_TEXT_SPELLING_H_
