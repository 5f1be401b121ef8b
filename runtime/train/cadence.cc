#include "runtime/train/cadence.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {

absl::StatusOr<Cadence> ParseCadence(absl::string_view flag,
                                     absl::string_view text) {
  if (text == "never") return Cadence{Cadence::Unit::kNever, 1};
  Cadence cadence{Cadence::Unit::kSteps, 0};
  absl::string_view number = text;
  if (!text.empty() && text.back() == 'e') {
    cadence.unit = Cadence::Unit::kEpochs;
    number.remove_suffix(1);
  } else if (!text.empty() && text.back() == 'm') {
    cadence.unit = Cadence::Unit::kMinutes;
    number.remove_suffix(1);
  }
  if (!absl::SimpleAtoi(number, &cadence.every) || cadence.every < 1 ||
      cadence.every > 1000000000) {
    return UsageError(flag, " \"", text,
                      "\": expected a number of steps (500), minutes (10m) or "
                      "epochs (1e) from 1 on, or never");
  }
  return cadence;
}

}  // namespace runtime
}  // namespace halftone
