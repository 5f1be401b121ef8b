// The CUDA kernels on the host: kernels/cuda/emulation.
#include "absl/strings/match.h"
#include "graph/base/error.h"
#include "kernels/cuda/emulation/emulator.h"
#include "kernels/cuda/emulation/products.h"
#include "kernels/cuda/register_all.h"
#include "tests/ops/cuda_code.h"
#include "tests/ops/devices.h"

namespace halftone {

void RegisterTestedKernels(kernels::KernelRegistry& registry) {
  kernels::RegisterOwnCudaKernels(registry);
  kernels::cuda::RegisterEmulatedProducts(registry);
}

absl::Status InEveryOrder(absl::string_view device,
                          const std::function<absl::Status()>& run) {
  if (device == "cpu") return run();
  for (emulation::Order order : emulation::kOrders) {
    emulation::SetOrder(order);
    HT_RETURN_IF_ERROR(run());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<runtime::Device>> MakeTestedDevice(
    absl::string_view, int threads) {
  return runtime::MakeCpuDevice(0, threads);
}

bool IsLeftOut(absl::string_view op) {
  return op == "matmul_bias_relu" || op == "conv_bias_relu" ||
         absl::StartsWith(op, "norm_conv_") || op == "conv_stats" ||
         absl::StartsWith(op, "recompute_") || op == "conv_grad_norm" ||
         op == "conv_grad_add_norm";
}

}  // namespace halftone
