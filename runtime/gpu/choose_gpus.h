// Which GPU a rank gets. CUDA counts the devices of CUDA_VISIBLE_DEVICES from
// 0; people mean physical ids, those of nvidia-smi: GpuLibrary and the launcher
// have CUDA number devices likewise (CUDA_DEVICE_ORDER).
#ifndef HALFTONE_RUNTIME_GPU_CHOOSE_GPUS_H_
#define HALFTONE_RUNTIME_GPU_CHOOSE_GPUS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {

// CUDA's ordinals of the physical ids of --gpus, for the ranks of one process:
// an id is a member of CUDA_VISIBLE_DEVICES where that is set. An id may come
// twice: two ranks on one device. Errors: kUsage for an id that is no member,
// kDevice where all devices are hidden.
absl::StatusOr<std::vector<int>> OrdinalsOf(absl::Span<const int> gpus,
                                            const Environment& env);

// The ordinal of a rank that a launcher started: the one that ours chose; 0
// where the launcher left just one visible; else the local rank. An error
// (kDevice) if more ranks are here than devices are visible.
absl::StatusOr<int> OrdinalOf(const RankPlacement& place,
                              const Environment& env);

// How many of this machine's `gpus` CUDA_VISIBLE_DEVICES leaves.
int CountVisible(int gpus, const Environment& env);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_GPU_CHOOSE_GPUS_H_
