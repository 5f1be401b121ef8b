// The CUDA kernels on a GPU.
#include "absl/strings/match.h"
#include "graph/base/error.h"
#include "kernels/cuda/register_all.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/ops/cuda_code.h"
#include "tests/ops/devices.h"

namespace halftone {

void RegisterTestedKernels(kernels::KernelRegistry& registry) {
  kernels::RegisterCudaKernels(registry);
}

// A device takes them as it likes.
absl::Status InEveryOrder(absl::string_view device,
                          const std::function<absl::Status()>& run) {
  if (device != "cpu") HT_RETURN_IF_ERROR(run());
  return run();
}

absl::StatusOr<std::unique_ptr<runtime::Device>> MakeTestedDevice(
    absl::string_view device, int threads) {
  if (device == "cpu") return runtime::MakeCpuDevice(0, threads);
  return runtime::CudaDevice::Create(0);
}

// kernels/cuda/matmul.cu says why.
bool IsLeftOut(absl::string_view op) {
  return op == "matmul_bias_relu" || absl::StartsWith(op, "recompute_");
}

}  // namespace halftone
