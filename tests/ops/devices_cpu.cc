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

bool IsLeftOut(absl::string_view) { return false; }

}  // namespace halftone
