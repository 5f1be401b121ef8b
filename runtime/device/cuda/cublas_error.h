// HT_CUDA for calls of cuBLAS and cuBLASLt.
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_CUBLAS_ERROR_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_CUBLAS_ERROR_H_

#include <cublasLt.h>

#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/cuda_error.h"

namespace halftone {
namespace runtime {

inline absl::Status CudaCallStatus(cublasStatus_t code, absl::string_view call,
                                   absl::string_view context) {
  return CudaLibraryError(call, context,
                          absl::StrCat(cublasLtGetStatusString(code), " (",
                                       static_cast<int>(code), ")"));
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_CUBLAS_ERROR_H_
