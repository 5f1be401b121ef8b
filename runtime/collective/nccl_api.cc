#include "runtime/collective/nccl_api.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/device/cuda/cuda_error.h"

namespace halftone {
namespace runtime {

const NcclApi& LinkedNccl() {
  // In a graph NCCL would work on the buffers themselves and choose how to add
  // accordingly. A step must have the same bits whether it is replayed or, as
  // the first one after a resume, not. NCCL knows no other way to be told.
  static const int told = setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/0);
  (void)told;
  static constexpr NcclApi api = {
      ::ncclGetUniqueId,  ::ncclCommInitRankConfig,
      ::ncclCommSplit,    ::ncclCommGetAsyncError,
      ::ncclCommFinalize, ::ncclCommDestroy,
      ::ncclCommAbort,    ::ncclRedOpCreatePreMulSum,
      ::ncclRedOpDestroy, ::ncclAllReduce,
      ::ncclBroadcast,    ::ncclAllGather,
      ::ncclReduceScatter};
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
