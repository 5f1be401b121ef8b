// The devices whose kernels a test binary runs. Each of devices_*.cc defines
// these for another binary, so that all run the same cases.
#ifndef HALFTONE_TESTS_OPS_DEVICES_H_
#define HALFTONE_TESTS_OPS_DEVICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/kernel_registry.h"
#include "runtime/device/device.h"

namespace halftone {

// "cpu" or "cuda".
const std::vector<std::string>& TestedDevices();
const kernels::KernelRegistry& TestedKernels();
// Numbers of compute threads that make a difference.
std::vector<int> TestedThreads();
// Calls `run`, which runs a kernel and reads what it wrote, in each order that
// the device's threads and stores can be told to take; more than once where
// that is up to the device.
absl::Status InEveryOrder(absl::string_view device,
                          const std::function<absl::Status()>& run);
// Also of "cpu", for references.
absl::StatusOr<std::unique_ptr<runtime::Device>> MakeTestedDevice(
    absl::string_view device, int threads);
// Ops and patterns that the device has no kernels for, or kernels that this
// binary cannot run: calls of libraries that need their hardware.
bool IsLeftOut(absl::string_view op_or_pattern);

}  // namespace halftone

#endif  // HALFTONE_TESTS_OPS_DEVICES_H_
