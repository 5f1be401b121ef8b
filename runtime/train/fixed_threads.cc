#include "runtime/train/fixed_threads.h"

#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

FixedThreads::FixedThreads(const TrainConfig& config,
                           const std::vector<RankResources>& ranks)
    : ranks_(ranks) {
  if (!config.strategy.dist().has_virtual_shards()) return;
  for (RankResources& rank : ranks_) {
    if (rank.device->kind() != "cpu") continue;
    devices_.push_back(MakeCpuDevice(rank.device->ordinal(), /*threads=*/1));
    rank.device = devices_.back().get();
  }
}

}  // namespace runtime
}  // namespace halftone
