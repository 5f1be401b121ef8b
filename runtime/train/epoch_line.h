// The line of a training that is rewritten as it goes on.
#ifndef HALFTONE_RUNTIME_TRAIN_EPOCH_LINE_H_
#define HALFTONE_RUNTIME_TRAIN_EPOCH_LINE_H_

#include <string>

#include "runtime/log/metrics_log.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/timing.h"

namespace halftone {
namespace runtime {

// "epoch 3/5  step 69/115  loss 0.113 ...". In `room` columns (0: any number)
// loss, rate and time to go stay, and the rest goes, the least important first.
std::string EpochLine(const Rank& rank, const StepEvent& event,
                      const EventTimes& times, int room);

// "5.74 ms = data 0 + fwd/bwd 4.91 + comm 0.63 + update 0.2": as printed, the
// parts sum to the whole. `parts_known`: the device says what took how long.
std::string StepTimesText(const StepTimes& ms, bool parts_known);

// Whether the rank's device tells the parts of a step apart: one that works
// asynchronously does not.
bool KnowsParts(const Rank& rank);

// " img/s" if a feed is an image, else " samples/s".
const char* PerSecond(const RunData& data);
// "11.2k", "930", "2.31".
std::string Rate(double per_second);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_EPOCH_LINE_H_
