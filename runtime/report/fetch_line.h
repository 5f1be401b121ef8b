// What is said of values that were asked for with --fetch.
#ifndef HALFTONE_RUNTIME_REPORT_FETCH_LINE_H_
#define HALFTONE_RUNTIME_REPORT_FETCH_LINE_H_

#include <string>

#include "runtime/report/run_events.h"

namespace halftone {
namespace runtime {

// "fetch    logits:norm 12.3, conv1.w.grad:hist -0.1 .. 0.2, 0 not finite";
// exponents of several values together: "exponents of 10 values 2^-24 .. 2^9,
// 0.4 % flushed (most: conv1.w.grad 3 %), none overflowed at scale 32768; 65536
// .. 2097152 would do". Empty: nothing was asked for.
std::string FetchLine(const StepEvent& event);

// "fetch    exponent histograms: 0.4 % of the run, 0.31 s in 12 steps". Empty:
// nothing was shown.
std::string FetchCostLine(const RunEnded& end);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_FETCH_LINE_H_
