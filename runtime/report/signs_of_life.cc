#include "runtime/report/signs_of_life.h"

#include <algorithm>

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

std::string StoppingText(const Activity::Now& now, bool ahead, bool keeps) {
  std::string text = "stop     finishing ";
  if (Trains(now)) {
    // The step that runs was fed before the signal came; the next one carries
    // it, and is read when two more are under way, or at the epoch's end.
    const int64_t told = now.done + (ahead ? 1 : 2);
    const int64_t per_epoch = std::max<int64_t>(now.number, 1);
    const int64_t epoch_end = (told + per_epoch - 1) / per_epoch * per_epoch;
    absl::StrAppend(&text, "step ", std::min(told + 2, epoch_end));
  } else {
    absl::StrAppend(&text, "the ", now.stage, " and the next step");
  }
  return absl::StrCat(
      text, keeps ? ", then a checkpoint" : " (nothing is kept without --out)",
      "; once more stops now");
}

}  // namespace runtime
}  // namespace halftone
