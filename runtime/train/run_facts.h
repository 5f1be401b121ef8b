// What a run's events say, taken from where its loop has it.
#ifndef HALFTONE_RUNTIME_TRAIN_RUN_FACTS_H_
#define HALFTONE_RUNTIME_TRAIN_RUN_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/profile/profile.h"
#include "runtime/report/run_events.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/timing.h"
#include "runtime/train/totals.h"

namespace halftone {
namespace runtime {

// `rank` is set up.
RunStarted StartOf(const Rank& rank);
// At the run's start: the steps that it is to have at its end.
int64_t TotalSteps(const Rank& rank);
// RunStarted::settings, also for the checkpoints.
std::map<std::string, std::string> SettingsOf(const Rank& rank);

// `since` sums the steps since the last event. Without what was fetched.
StepEvent StateOf(const StepRecord& record, const RunningLoss& since,
                  const EventTimes& times);

// Loss and metrics.
EvalEvent EvalOf(const EvalReport& report);
// In the model's order.
std::vector<std::string> MetricNames(const Program& program);

// The last eval, if it may be shown as this run's, which may have gone on from
// where an earlier one had made it.
std::optional<EvalEvent> LastEvalOf(const Rank& rank);
// Without exit code and signal. `profile` may be null.
RunEnded EndOf(const Rank& rank, const RunTimes& times, const Profile* profile);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RUN_FACTS_H_
