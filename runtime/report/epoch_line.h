// The line of a training that is rewritten as it goes on.
#ifndef HALFTONE_RUNTIME_REPORT_EPOCH_LINE_H_
#define HALFTONE_RUNTIME_REPORT_EPOCH_LINE_H_

#include <string>

#include "runtime/report/run_events.h"

namespace halftone {
namespace runtime {

// "epoch 3/5  step 69/115  loss 0.113 ...". In `room` columns (0: any number)
// loss, rate and time to go stay, and the rest goes, the least important first.
std::string EpochLine(const RunStarted& run, const StepEvent& event, int room);

// "5.74 ms = data 0 + fwd/bwd 4.91 + comm 0.63 + update 0.2": as printed, the
// parts sum to the whole. `parts_known`: the device says what took how long.
std::string StepTimesText(const StepTimes& ms, bool parts_known);

// "11.2k img/s", "930 samples/s", "2.31 samples/s". `images`: which they are.
std::string SamplesRate(bool images, double per_second);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_EPOCH_LINE_H_
