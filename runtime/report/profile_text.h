// What `run --profile` says at the end.
#ifndef HALFTONE_RUNTIME_REPORT_PROFILE_TEXT_H_
#define HALFTONE_RUNTIME_REPORT_PROFILE_TEXT_H_

#include <string>

#include "runtime/report/run_events.h"

namespace halftone {
namespace runtime {

// Tables: of each class milliseconds, share, kernels, bytes and operations per
// second, and, where the device's rates are known, the share of the roofline;
// then the same of the ops that took most, what they were predicted to take,
// and what would help. `columns`: of the terminal; 0: none.
std::string ProfileText(const ProfileTable& profile, int columns);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_PROFILE_TEXT_H_
