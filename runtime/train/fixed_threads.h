// How many threads compute where the bits must not depend on it.
#ifndef HALFTONE_RUNTIME_TRAIN_FIXED_THREADS_H_
#define HALFTONE_RUNTIME_TRAIN_FIXED_THREADS_H_

#include <memory>
#include <vector>

#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// Where a step's sums are those of virtual shards, CPU ranks compute with one
// thread each: our own kernels add in the same order with any number, but
// oneDNN cuts its sums by threads. Else ranks are as they are given.
class FixedThreads {
 public:
  FixedThreads(const TrainConfig& config,
               const std::vector<RankResources>& ranks);
  // Valid as long as this.
  const std::vector<RankResources>& ranks() const { return ranks_; }

 private:
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<RankResources> ranks_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_FIXED_THREADS_H_
