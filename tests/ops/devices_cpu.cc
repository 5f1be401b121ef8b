#include "absl/strings/match.h"
#include "tests/ops/devices.h"

namespace halftone {

const std::vector<std::string>& TestedDevices() {
  static const auto* const devices = new std::vector<std::string>{"cpu"};
  return *devices;
}

const kernels::KernelRegistry& TestedKernels() { return kernels::Kernels(); }

std::vector<int> TestedThreads() { return {1, 3}; }

absl::StatusOr<std::unique_ptr<runtime::Device>> MakeTestedDevice(
    absl::string_view, int threads) {
  return runtime::MakeCpuDevice(0, threads);
}

// The CPU's norms stay whole, and of products it fuses a relu alone.
bool IsLeftOut(absl::string_view op) {
  return absl::StartsWith(op, "norm_") || op == "conv_stats" ||
         op == "conv_grad_norm" || absl::StartsWith(op, "relu_grad_") ||
         op == "matmul_gelu" || op == "matmul_gelu_grad" ||
         op == "matmul_relu_grad" || op == "matmul_bias_grad";
}

}  // namespace halftone
