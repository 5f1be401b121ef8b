// What this machine is to a run, for `version` and `doctor`.
#ifndef HALFTONE_TOOLS_REPORT_MACHINE_H_
#define HALFTONE_TOOLS_REPORT_MACHINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace halftone {
namespace tools {

// The processor with its usable cores and what matters of its instructions.
std::string ThisCpu();
// Targets that this build has kernels for, and those that it has none for.
struct BuiltTargets {
  std::vector<std::string> built, missing;
};
BuiltTargets TargetsOfBuild();
// A description of each GPU, or why it cannot be used. Errors (kDevice): the
// library with the GPU's code, or its driver, cannot be used at all.
absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GpusHere();

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_MACHINE_H_
