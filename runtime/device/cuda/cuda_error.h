// Every call of CUDA and its libraries goes through HT_CUDA.
//
//   HT_RETURN_IF_ERROR(HT_CUDA(cudaEventRecord(event, stream), "stream copy"));
//   relu<<<grid, block, 0, stream>>>(x, y, n);
//   return HT_CUDA_LAUNCHED("relu", op_name);
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_ERROR_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// What `code` of `call` ("cudaMalloc(&data, bytes)"; the arguments are left
// out) means: OK, kOutOfMemory, kDevice, or kCompilerBug for what only our own
// mistake can cause. `context` says for what the call was made, an op's name
// or "stream copy_in". The message names call, context, device and code, and
// says what to do. After an error that leaves the device unusable, it and
// every later one of this device is the first such error.
absl::Status CudaCallStatus(cudaError_t code, absl::string_view call,
                            absl::string_view context);

// The same without asking the driver; `device` is "cuda:0".
absl::Status CudaErrorOf(cudaError_t code, absl::string_view call,
                         absl::string_view context, absl::string_view device);

// Whether all later calls of the process on the device fail too.
bool IsSticky(cudaError_t code);

// For other libraries: "cublasLtMatmul for conv1 on cuda:0: <what>".
absl::Status CudaLibraryError(absl::string_view call, absl::string_view context,
                              absl::string_view what);

}  // namespace runtime
}  // namespace halftone

// The absl::Status of one call. `call` is an expression of type cudaError_t,
// or of another library whose CudaCallStatus is declared (cublas_error.h,
// cudnn_error.h); `context` is not looked at unless it failed.
#define HT_CUDA(call, context) HT_CUDA_NAMED_(call, #call, context)
// The status of the kernel launch before it; `kernel` is its name.
#define HT_CUDA_LAUNCHED(kernel, context) \
  HT_CUDA_NAMED_(cudaGetLastError(), "launch of " kernel, context)

#define HT_CUDA_NAMED_(call, name, context)                                \
  ([&]() -> ::absl::Status {                                               \
    const auto ht_code_ = (call);                                          \
    if (static_cast<int>(ht_code_) == 0) return ::absl::OkStatus();        \
    return ::halftone::runtime::CudaCallStatus(ht_code_, name, (context)); \
  }())

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_ERROR_H_
