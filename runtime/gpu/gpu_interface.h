// What the binary and libhalftone_cuda.so exchange. C++ objects pass between
// them: both are made by one build, which the stamp holds.
#ifndef HALFTONE_RUNTIME_GPU_GPU_INTERFACE_H_
#define HALFTONE_RUNTIME_GPU_GPU_INTERFACE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/kernel_registry.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

struct GpuInterface {
  // Devices that the process sees. An error (kDevice) says what is missing:
  // the driver, or a newer one.
  absl::StatusOr<int> (*count_devices)();
  // The target whose kernels run on a device, which is not touched: a process
  // that looks at one leaves nothing there. Errors are kDevice: no such device,
  // too old.
  absl::StatusOr<std::string> (*target_of)(int ordinal);
  // Errors are kDevice: as above, or in use by others.
  absl::StatusOr<std::unique_ptr<Device>> (*make_device)(int ordinal);
  // Adds the kernels for GPUs; needs no driver.
  void (*register_kernels)(kernels::KernelRegistry& registry);
  // NCCL between the ranks that `host` connects, each on a device of its own;
  // all call it together. `device` is one of make_device; it and all graphs
  // with collectives in them end before the communicator. `timeout`: of one
  // collective.
  absl::StatusOr<std::unique_ptr<Communicator>> (*connect)(
      std::unique_ptr<Communicator> host, Device* device,
      absl::Duration connect_timeout, absl::Duration timeout);
};

// The library's only symbol: the interface, or null if the stamps differ;
// `*own` is the library's stamp.
using GpuEntry = const GpuInterface*(const char* stamp, const char** own);
inline constexpr char kGpuEntryName[] = "HalftoneGpuEntry";
inline constexpr char kGpuLibraryName[] = "libhalftone_cuda.so";

// Equal for a binary and a library whose headers are the same.
const char* GpuStamp();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_GPU_GPU_INTERFACE_H_
