// The CUDA kernels on a GPU.
#include "kernels/cuda/register_all.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/ops/devices.h"

namespace halftone {

const std::vector<std::string>& TestedDevices() {
  static const auto* const devices = new std::vector<std::string>{"cuda"};
  return *devices;
}

const kernels::KernelRegistry& TestedKernels() {
  static const kernels::KernelRegistry* const kernels = [] {
    auto* filled = new kernels::KernelRegistry;
    kernels::RegisterCudaKernels(*filled);
    return filled;
  }();
  return *kernels;
}

std::vector<int> TestedThreads() { return {1}; }

absl::StatusOr<std::unique_ptr<runtime::Device>> MakeTestedDevice(
    absl::string_view device, int threads) {
  if (device == "cpu") return runtime::MakeCpuDevice(0, threads);
  return runtime::CudaDevice::Create(0);
}

// kernels/cuda/matmul.cu says why.
bool IsLeftOut(absl::string_view op) { return op == "matmul_bias_relu"; }

}  // namespace halftone
