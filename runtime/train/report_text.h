// The lines that a run prints.
#ifndef HALFTONE_RUNTIME_TRAIN_REPORT_TEXT_H_
#define HALFTONE_RUNTIME_TRAIN_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "runtime/log/metrics_log.h"
#include "runtime/train/progress.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/timing.h"
#include "runtime/train/totals.h"

namespace halftone {
namespace runtime {

// "data     1,438 train, 359 test; batch 64 = 2 x 32, ...".
std::string DataLine(const Rank& rank);
// "resume   ckpt/step-69: epoch 4 sample 0, 69 applied, ...": what equality
// with the uninterrupted run is promised, by what is the same.
std::string ResumeLine(const Rank& rank);
// "epoch 3/5  step 69/115  loss 0.113 ...".
std::string EpochLine(const Rank& rank, const StepEvent& event,
                      const EventTimes& times);
// "step 70  skipped: conv2.w.grad has inf; bad 1 of 2, scale stays 32768".
// `bad_limit`: bad steps in a row that lower the scale; 0: unknown.
std::string SkipLine(const SkipEvent& event, float scale_before,
                     int64_t bad_limit);
// "eval 3   top1 96.9 % (348/359)  loss 0.121".
std::string EvalLine(const EvalEvent& event);

// What the three lines at the end are made of.
struct EndOfRun {
  const Rank* rank = nullptr;
  const RunTimes* times = nullptr;
  int64_t checkpoint = -1;  // step of the last one; -1: none
  int signal = 0;           // that stopped the run
  int exit_code = 0;
};
// "done     ...", "speed    ...", "memory   ...".
std::vector<std::string> EndLines(const EndOfRun& end);
// The content of summary.json.
std::string SummaryJson(const EndOfRun& end);

// "top1 97.5 % (350/359)" of each metric, in the model's order.
std::string MetricsText(const Program& program, const EvalReport& report);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_REPORT_TEXT_H_
