#include "runtime/rendezvous/restart_cause.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace halftone {
namespace runtime {

std::string ToText(const RestartCause& cause) {
  return absl::StrCat(cause.attempt, " ", cause.rank, " ", cause.step, " ",
                      cause.cause);
}

std::optional<RestartCause> FindRestartCause(const Environment& env) {
  const auto text = env.find(kRestartVariable);
  if (text == env.end()) return std::nullopt;
  const std::vector<std::string> words =
      absl::StrSplit(text->second, absl::MaxSplits(' ', 3));
  RestartCause cause;
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], &cause.attempt) ||
      !absl::SimpleAtoi(words[1], &cause.rank) ||
      !absl::SimpleAtoi(words[2], &cause.step)) {
    return std::nullopt;
  }
  cause.cause = words[3];
  return cause;
}

}  // namespace runtime
}  // namespace halftone
