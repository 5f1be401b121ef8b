// The functions of NCCL that we call, as a table: tests put their own there.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_NCCL_API_H_
#define HALFTONE_RUNTIME_COLLECTIVE_NCCL_API_H_

#include <nccl.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

struct NcclApi {
  decltype(&::ncclGetUniqueId) ncclGetUniqueId;
  decltype(&::ncclCommInitRankConfig) ncclCommInitRankConfig;
  decltype(&::ncclCommSplit) ncclCommSplit;
  decltype(&::ncclCommGetAsyncError) ncclCommGetAsyncError;
  decltype(&::ncclCommFinalize) ncclCommFinalize;
  decltype(&::ncclCommDestroy) ncclCommDestroy;
  decltype(&::ncclCommAbort) ncclCommAbort;
  decltype(&::ncclRedOpCreatePreMulSum) ncclRedOpCreatePreMulSum;
  decltype(&::ncclRedOpDestroy) ncclRedOpDestroy;
  decltype(&::ncclAllReduce) ncclAllReduce;
  decltype(&::ncclBroadcast) ncclBroadcast;
  decltype(&::ncclAllGather) ncclAllGather;
  decltype(&::ncclReduceScatter) ncclReduceScatter;
};

// The library's own. The first call sets environment variables for it: before
// there are threads that may read them.
const NcclApi& LinkedNccl();

// HT_CUDA for calls of NCCL. kCommunication, but for an error of this rank's
// device (kDevice). ncclInProgress is no error: look at it before.
absl::Status CudaCallStatus(ncclResult_t code, absl::string_view call,
                            absl::string_view context);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_NCCL_API_H_
