// The library's side of the door: its one visible symbol.
#include <cstring>

#include "kernels/cuda/register_all.h"
#include "runtime/collective/nccl_api.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/gpu/gpu_interface.h"

namespace halftone {
namespace runtime {
namespace {

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(int ordinal) {
  return CudaDevice::Create(ordinal);
}

constexpr GpuInterface kInterface = {CountCudaDevices, TargetOfDevice,
                                     MakeDevice, kernels::RegisterCudaKernels,
                                     ConnectNccl};

}  // namespace
}  // namespace runtime
}  // namespace halftone

extern "C" __attribute__((visibility("default")))
const halftone::runtime::GpuInterface*
HalftoneGpuEntry(const char* stamp, const char** own) {
  *own = halftone::runtime::GpuStamp();
  // Ranks that are threads come later, and NCCL is to know by then.
  (void)halftone::runtime::LinkedNccl();
  const bool same = std::strcmp(stamp, *own) == 0;
  return same ? &halftone::runtime::kInterface : nullptr;
}
