// From the device-free interface to CUDA's own handles.
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_NATIVE_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_NATIVE_H_

#include <cuda_runtime_api.h>

#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// `stream` must be one of a CUDA device.
inline cudaStream_t CudaStreamOf(Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_NATIVE_H_
