// What is said of a training while a step, an eval or a checkpoint takes long,
// and when it is told to stop.
#ifndef HALFTONE_RUNTIME_REPORT_SIGNS_OF_LIFE_H_
#define HALFTONE_RUNTIME_REPORT_SIGNS_OF_LIFE_H_

#include <string>

#include "runtime/log/pulse.h"

namespace halftone {
namespace runtime {

// The stage of an Activity in which steps run: its number is the steps of an
// epoch, what was done those that were begun, of those of the run.
inline constexpr char kTrainStage[] = "train";

// "train    step 4 of 115, 12 s in it so far"; "" while steps end faster than
// that, for they say more themselves.
std::string TrainingText(const Activity::Now& now);

// "stop     finishing step 73, then a checkpoint; once more stops now": what
// the steps do that are under way, see rank_loop.h. `ahead`: the device works
// behind the host. `keeps`: there is a run directory.
std::string StoppingText(const Activity::Now& now, bool ahead, bool keeps);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_SIGNS_OF_LIFE_H_
