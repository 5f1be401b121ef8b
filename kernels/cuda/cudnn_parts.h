// The libraries that libcudnn.so.9 opens by itself.
#ifndef HALFTONE_KERNELS_CUDA_CUDNN_PARTS_H_
#define HALFTONE_KERNELS_CUDA_CUDNN_PARTS_H_

#include <string>

#include "absl/status/status.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Whether the parts can be opened of the cuDNN whose libcudnn.so.9 lies in
// `folder`; an error (kDevice) names the first that cannot. To be asked before
// anything else of cuDNN: without the first part its first call ends the
// program, and without others it just has fewer engines, or none.
absl::Status CheckCudnnParts(const std::string& folder);

// Where this process found its libcudnn.so.9; "" if it has none.
std::string CudnnFolder();

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CUDNN_PARTS_H_
