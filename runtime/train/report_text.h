// The lines that a run prints.
#ifndef HALFTONE_RUNTIME_TRAIN_REPORT_TEXT_H_
#define HALFTONE_RUNTIME_TRAIN_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "runtime/log/metrics_log.h"
#include "runtime/train/profile.h"
#include "runtime/train/progress.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/timing.h"
#include "runtime/train/totals.h"

namespace halftone {
namespace runtime {

// Samples by rank: "64 = 2 x 32", "31 = 16 + 15", "5 = 2 + 3 x 1",
// "1 on 1 of 8 ranks".
std::string SplitText(int64_t samples, int world_size);
// "data     1,438 train, 359 test; batch 64 = 2 x 32, ...".
std::string DataLine(const Rank& rank);
// "resume   ckpt/step-69: epoch 4 sample 0, 69 applied, ...": what equality
// with the uninterrupted run is promised, by what is the same.
std::string ResumeLine(const Rank& rank);
// "step 70  skipped: conv2.w.grad has inf; bad 1 of 2, scale stays 32768".
// `bad_limit`: bad steps in a row that lower the scale; 0: nothing does.
std::string SkipLine(const SkipEvent& event, float scale_before,
                     int64_t bad_limit);
// "step 70  warning: the loss is inf, its gradients are finite: applied; 1 of 3
// in a row that end the run". `limit`: of the stop rule; 0: there is none.
std::string LossLine(const NotFiniteEvent& event, int64_t limit);
// "fetch    logits:norm 12.3, conv1.w.grad:hist -0.1 .. 0.2, 0 not finite";
// empty: nothing was asked for.
std::string FetchLine(const StepEvent& event);
// "eval 3   top1 96.9 % (348/359)  loss 0.121".
std::string EvalLine(const EvalEvent& event);

// What the three lines at the end are made of.
struct EndOfRun {
  const Rank* rank = nullptr;
  const RunTimes* times = nullptr;
  const Profile* profile = nullptr;  // null: not asked for
  int64_t checkpoint = -1;           // step of the last one; -1: none
  int signal = 0;                    // that stopped the run
  int exit_code = 0;
};
// Whether the last eval may be shown as this run's, which may have gone on
// from where an earlier one had made it.
bool HasEval(const Rank& rank);
// "done     5 epochs, 114 steps applied, ...".
std::string DoneLine(const EndOfRun& end);
// "speed    11.2k img/s, step median 5.7 ms ...".
std::string SpeedLine(const EndOfRun& end);
// These two, "memory   peak ..." and the profile.
std::vector<std::string> EndLines(const EndOfRun& end);
// The content of summary.json.
std::string SummaryJson(const EndOfRun& end);

// "top1 97.5 % (350/359)" of each metric, in the model's order.
std::string MetricsText(const Program& program, const EvalReport& report);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_REPORT_TEXT_H_
