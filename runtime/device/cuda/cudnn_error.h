// HT_CUDA for calls of cuDNN.
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_CUDNN_ERROR_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_CUDNN_ERROR_H_

#include <cudnn.h>

#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/cuda_error.h"

namespace halftone {
namespace runtime {

inline absl::Status CudaCallStatus(cudnnStatus_t code, absl::string_view call,
                                   absl::string_view context) {
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  return CudaLibraryError(
      call, context,
      absl::StrCat(cudnnGetErrorString(code), " (", static_cast<int>(code), ")",
                   detail[0] == 0 ? "" : ": ", detail));
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_CUDNN_ERROR_H_
