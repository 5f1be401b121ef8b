#include "tests/ops/cuda_code.h"

#include "tests/ops/devices.h"

namespace halftone {

const std::vector<std::string>& TestedDevices() {
  static const auto* const devices = new std::vector<std::string>{"cuda"};
  return *devices;
}

const kernels::KernelRegistry& TestedKernels() {
  static const kernels::KernelRegistry* const kernels = [] {
    auto* filled = new kernels::KernelRegistry;
    RegisterTestedKernels(*filled);
    return filled;
  }();
  return *kernels;
}

std::vector<int> TestedThreads() { return {1}; }

}  // namespace halftone
