// The ranks of this process on GPUs.
#ifndef HALFTONE_TOOLS_COMMON_GPU_RANKS_H_
#define HALFTONE_TOOLS_COMMON_GPU_RANKS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/rendezvous/environment.h"
#include "tools/common/run_flags.h"

namespace halftone {
namespace tools {

// A rank per id of --gpus, or --ranks on the first GPUs, as threads of this
// process that NCCL connects, or, where an id comes twice, the host. Errors:
// kUsage (ids that are not there to choose from), kDevice.
absl::Status AddGpuThreadRanks(const RankFlags& flags,
                               const runtime::Environment& env,
                               LocalRanks* local);

// The GPU of a rank that a launcher started, and NCCL beside `host`, which
// connects the ranks already.
absl::Status AddLaunchedGpuRank(const RankFlags& flags,
                                const runtime::RankPlacement& place,
                                const runtime::Environment& env,
                                std::unique_ptr<runtime::Communicator> host,
                                LocalRanks* local);

// The target of the GPU that this process is told to use (--gpus, or by our
// launcher); "" if it is told none.
absl::StatusOr<std::string> ChosenGpuTarget(const RankFlags& flags,
                                            const runtime::Environment& env);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_GPU_RANKS_H_
