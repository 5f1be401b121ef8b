// What is said of a training while a step, an eval or a checkpoint takes long,
// and when it is told to stop.
#ifndef HALFTONE_RUNTIME_REPORT_SIGNS_OF_LIFE_H_
#define HALFTONE_RUNTIME_REPORT_SIGNS_OF_LIFE_H_

#include <string>

#include "runtime/log/pulse.h"

namespace halftone {
namespace runtime {

// The stage of an Activity in which steps run: what was done are the steps that
// were begun, of those of the run.
inline constexpr char kTrainStage[] = "train";

// "train    step 4 of 115, 12 s in it so far"; "" while steps end faster than
// that, for they say more themselves.
std::string TrainingText(const Activity::Now& now);

// "stop     finishing the steps under way, then a checkpoint; once more stops
// now". Which step is the last is not known: the ranks have yet to agree on it.
// `keeps`: there is a run directory.
std::string StoppingText(const Activity::Now& now, bool keeps);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_SIGNS_OF_LIFE_H_
