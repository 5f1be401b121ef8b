#include "runtime/collective/nccl_api.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/device/cuda/cuda_error.h"

namespace halftone {
namespace runtime {

const NcclApi& LinkedNccl() {
  static constexpr NcclApi api = {::ncclGetUniqueId,
                                  ::ncclCommInitRankConfig,
                                  ::ncclCommGetAsyncError,
                                  ::ncclCommFinalize,
                                  ::ncclCommDestroy,
                                  ::ncclCommAbort,
                                  ::ncclRedOpCreatePreMulSum,
                                  ::ncclRedOpDestroy,
                                  ::ncclAllReduce,
                                  ::ncclBroadcast};
  return api;
}

absl::Status CudaCallStatus(ncclResult_t code, absl::string_view call,
                            absl::string_view context) {
  const char* const detail = ::ncclGetLastError(nullptr);
  const std::string what =
      absl::StrCat(::ncclGetErrorString(code), " (", static_cast<int>(code),
                   ")", detail == nullptr || detail[0] == 0 ? "" : ": ",
                   detail == nullptr ? "" : detail);
  const absl::Status status = CudaLibraryError(call, context, what);
  if (code == ncclUnhandledCudaError) return status;
  return CommunicationError(status.message());
}

}  // namespace runtime
}  // namespace halftone
