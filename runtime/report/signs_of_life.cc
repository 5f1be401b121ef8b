#include "runtime/report/signs_of_life.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

bool Trains(const Activity::Now& now) {
  return absl::string_view(now.stage) == kTrainStage;
}

}  // namespace

std::string TrainingText(const Activity::Now& now) {
  const Activity::Clock::time_point at = Activity::Clock::now();
  if (!Trains(now)) return ActivityText(now, at);
  const double seconds = std::chrono::duration<double>(at - now.moved).count();
  if (seconds < 2) return "";
  return absl::StrCat("train    step ", now.done + 1, " of ", now.of, ", ",
                      Duration(seconds), " in it so far");
}

std::string StoppingText(const Activity::Now& now, bool keeps) {
  return absl::StrCat(
      "stop     finishing the ",
      Trains(now) ? "steps under way"
                  : absl::StrCat(now.stage, " and the next steps"),
      keeps ? ", then a checkpoint" : " (nothing is kept without --out)",
      "; once more stops now");
}

}  // namespace runtime
}  // namespace halftone
