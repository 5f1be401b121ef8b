// The lines that a run prints.
#ifndef HALFTONE_RUNTIME_REPORT_REPORT_TEXT_H_
#define HALFTONE_RUNTIME_REPORT_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "runtime/report/run_events.h"

namespace halftone {
namespace runtime {

// Samples by rank: "64 = 2 x 32", "31 = 16 + 15", "5 = 2 + 3 x 1",
// "1 on 1 of 8 ranks".
std::string SplitText(int64_t samples, int world_size);
// "data     1,438 train, 359 test; batch 64 = 2 x 32, ...".
std::string DataLine(const RunStarted& run);
// "resume   ckpt/step-69: epoch 4 sample 0, 69 applied, ...": what equality
// with the uninterrupted run is promised, by what is the same.
std::string ResumeLine(const RunStarted& run, const Resumed& was);
// "step 70  skipped: conv2.w.grad has inf; bad 1 of 2, scale stays 32768".
// `bad_limit`: bad steps in a row that lower the scale; 0: nothing does.
std::string SkipLine(const SkipEvent& event, int64_t bad_limit);
// "step 70  warning: the loss is inf, its gradients are finite: applied; 1 of 3
// in a row that end the run". `limit`: of the stop rule; 0: there is none.
std::string LossLine(const NotFiniteEvent& event, int64_t limit);
// "eval 3   top1 96.9 % (348/359)  loss 0.121".
std::string EvalLine(const EvalEvent& event);
// " (main 1.5, aux 0.02)" of a loss that adds up several; else empty.
std::string PartsText(const std::vector<PartLoss>& parts);
// "top1 97.5 % (350/359)" of each metric in this order; without one, the loss.
std::string MetricsText(const std::vector<std::string>& order,
                        const EvalEvent& eval);

// "done     5 epochs, 114 steps applied, ...".
std::string DoneLine(const RunStarted& run, const RunEnded& end);
// "speed    11.2k img/s, step median 5.7 ms ..."; empty where nothing took
// time.
std::string SpeedLine(const RunStarted& run, const RunEnded& end);
// "data     read at 450 img/s per worker, 2 workers; 3 broken samples left
// out"; without the first where reading takes less than a hundredth of the
// time.
std::string ReadingLine(const RunStarted& run, const RunEnded& end);
// "memory   peak 3.6 MiB per rank, ...". `checkpoint`: step of the last one;
// -1: none was written. `has_summary`: whether one is written.
std::string MemoryLine(const RunStarted& run, const RunEnded& end,
                       int64_t checkpoint, bool has_summary);
}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_REPORT_TEXT_H_
