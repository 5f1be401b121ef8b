// The CUDA kernels on the host: kernels/cuda/emulation.
#include "absl/strings/match.h"
#include "kernels/cuda/register_all.h"
#include "tests/ops/devices.h"

namespace halftone {

const std::vector<std::string>& TestedDevices() {
  static const auto* const devices = new std::vector<std::string>{"cuda"};
  return *devices;
}

const kernels::KernelRegistry& TestedKernels() {
  static const kernels::KernelRegistry* const kernels = [] {
    auto* filled = new kernels::KernelRegistry;
    kernels::RegisterOwnCudaKernels(*filled);
    return filled;
  }();
  return *kernels;
}

std::vector<int> TestedThreads() { return {1}; }

absl::StatusOr<std::unique_ptr<runtime::Device>> MakeTestedDevice(
    absl::string_view, int threads) {
  return runtime::MakeCpuDevice(0, threads);
}

bool IsLeftOut(absl::string_view op) {
  return op == "mul" || absl::StartsWith(op, "matmul") ||
         op == "conv_bias_relu";
}

}  // namespace halftone
