#include "runtime/device/cuda/tested_gpu.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "graph/base/error.h"
#include "runtime/device/cuda/cuda_device.h"

namespace halftone {
namespace runtime {

std::unique_ptr<Device> TestedGpu(int ordinal) {
  auto device = CudaDevice::Create(ordinal);
  if (device.ok()) return *std::move(device);
  const std::string message(device.status().message());
  std::fflush(stdout);
  std::fprintf(stderr, "error    %s\n", message.c_str());
  // Other ranks of the test may be threads that run.
  std::_Exit(static_cast<int>(ExitCodeOf(device.status())));
}

}  // namespace runtime
}  // namespace halftone
