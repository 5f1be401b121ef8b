// The GPU that a test tagged gpu runs on.
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_TESTED_GPU_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_TESTED_GPU_H_

#include <memory>

#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// Without the device there is nothing to test: ends the program with what is
// missing and its exit code.
std::unique_ptr<Device> TestedGpu(int ordinal = 0);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_TESTED_GPU_H_
