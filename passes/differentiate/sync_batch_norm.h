// sync-batch-norm: in training, every batch norm normalises by the statistics
// of all ranks.
//
//   before
//     bn1: batch_norm(X=c, Scale=s, Bias=b, Mean=m, Variance=v) -> (Y=bn1 : f16[B,16,28,28], BatchMean=..., ...)
//   after
//     bn1: sync_batch_norm(X=c, Scale=s, Bias=b, Mean=m, Variance=v) -> (Y=bn1 : f16[B,16,28,28], BatchMean=..., ...)
//
// Before append-backward: the gradient, too, needs sums over all ranks.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_SYNC_BATCH_NORM_H_
#define HALFTONE_PASSES_DIFFERENTIATE_SYNC_BATCH_NORM_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class SyncBatchNorm : public Pass {
 public:
  absl::string_view name() const override { return "sync-batch-norm"; }
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_SYNC_BATCH_NORM_H_
