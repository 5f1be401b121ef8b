// What driver and devices this process finds, and whether they will do.
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_DRIVER_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_DRIVER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Devices that the process sees, at least 1. Errors (kDevice): no driver, one
// too old, no device.
absl::StatusOr<int> CountCudaDevices();

// An error (kDevice) unless this process sees such a device.
absl::Status CheckOrdinal(int ordinal);

// Versions as CUDA encodes them, 13000 for 13.0; `driver` is the newest CUDA
// that the driver serves, 0 without one; `built` is that of this build.
absl::Status CheckDriverVersion(int driver, int built);

// The target whose kernels run on a device of this compute capability. An
// error (kDevice) for those that are older than all targets.
absl::StatusOr<std::string> TargetOfCapability(int major, int minor,
                                               absl::string_view device);
// The same of a device; makes no context there, which would take its memory.
absl::StatusOr<std::string> TargetOfDevice(int ordinal);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_DRIVER_H_
