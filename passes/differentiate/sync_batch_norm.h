// sync-batch-norm: in training, every batch norm normalises by the statistics
// of all ranks, or of its group's: with dist.sync_batch_norm_group_size 4 those
// of ranks 0 to 3, of 4 to 7, and so on.
//
//   before
//     bn1: batch_norm(X=c, Scale=s, Bias=b, Mean=m, Variance=v) -> (Y=bn1 : f16[B,16,28,28], BatchMean=..., ...)
//   after
//     bn1: sync_batch_norm(X=c, Scale=s, Bias=b, Mean=m, Variance=v) -> (Y=bn1 : f16[B,16,28,28], BatchMean=..., ...)   {group_size=4}
//
// Before append-backward: the gradient, too, needs sums over all ranks.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_SYNC_BATCH_NORM_H_
#define HALFTONE_PASSES_DIFFERENTIATE_SYNC_BATCH_NORM_H_

#include <cstdint>

#include "passes/pass.h"

namespace halftone {
namespace passes {

class SyncBatchNorm : public Pass {
 public:
  // Consecutive ranks of a group; 0: all ranks are one.
  explicit SyncBatchNorm(int64_t group_size) : group_size_(group_size) {}

  absl::string_view name() const override { return "sync-batch-norm"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const int64_t group_size_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_SYNC_BATCH_NORM_H_
