// What a target's kernels are: on this side of the door.
#ifndef HALFTONE_RUNTIME_GPU_TARGETS_H_
#define HALFTONE_RUNTIME_GPU_TARGETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace runtime {

// The registry in which a target's kernels are: the binary's own or the shared
// library's, which this opens; no driver is needed. Errors: kUsage for an
// unknown target, kDevice for a build without the library.
absl::StatusOr<const kernels::KernelRegistry*> KernelsOf(
    absl::string_view target);

// The keys of a target's kernels, for the compiler. A GPU's are read from a
// list that the build wrote beside the binary: none of CUDA's libraries is
// needed. Errors: kUsage for an unknown target, kDevice for a build without
// GPU code or with another's list.
absl::StatusOr<std::vector<std::string>> KernelKeysOf(absl::string_view target);

inline constexpr char kGpuKernelList[] = "libhalftone_cuda.kernels";
// The list's text: a first line with the stamp of the build, a key per line.
std::string KernelListText(const std::vector<std::string>& keys);
// `path` is for errors.
absl::StatusOr<std::vector<std::string>> ParseKernelList(
    absl::string_view text, absl::string_view path);

// The target that a run on this machine has by default: that of its GPU (a
// launched rank's own, else the first) if there is one that this build can use,
// else the CPU.
std::string DefaultTarget();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_GPU_TARGETS_H_
