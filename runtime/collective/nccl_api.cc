#include "runtime/collective/nccl_api.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/device/cuda/cuda_error.h"

namespace halftone {
namespace runtime {
namespace {

// NCCL knows no other way to be told.
bool TellNccl() {
  // In a graph NCCL would work on the buffers themselves and choose how to add
  // accordingly. A step must have the same bits whether it is replayed or, as
  // the first one after a resume, not: whatever the user wishes.
  setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/1);
  // By nodes a rank has several communicators, on two streams. Their kernels
  // could wait for each other between ranks that begin them in another order:
  // it shall be that of the calls, which is the same on all.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  return true;
}

}  // namespace

const NcclApi& LinkedNccl() {
  static const bool told = TellNccl();
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
