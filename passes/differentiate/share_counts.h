// share-counts: a loss that adds means over different counts is weighed over
// ranks by the samples of each, n_r of N. A mean that divides by another count
// m_r is to divide by this rank's share of the total instead, M * n_r / N:
// weighed by n_r / N, the sum over ranks is then that over all samples divided
// by M, whatever the split, in the loss as in its gradient.
//
//   before (train; loss denominator words)
//     a: reduce_sum(X=masked) -> (Out=a : f32[])
//     words: reduce_sum(X=mask) -> (Out=words : f32[])
//     mean: elementwise_div(X=a, Y=words) -> (Out=mean : f32[])
//   after
//     words: reduce_sum(X=mask) -> (Out=words : f32[])
//     samples: element_count(X=x) -> (Out=samples : f32[]) {axis=0}   communicate f32 SCHEMA
//     counts: all_reduce(X=[samples, words]) -> (Out=[samples.total : f32[], words.total : f32[]]) {of="counts"}   communicate f32 SCHEMA
//     words.share: count_share(Total=words.total, Count=samples, AllCounts=samples.total) -> (Out=words.share : f32[])   communicate f32 SCHEMA
//     a: reduce_sum(X=masked) -> (Out=a : f32[])
//     mean: elementwise_div(X=a, Y=words.share) -> (Out=mean : f32[])
//
// One rank's share is its count, bit for bit. What makes a denominator of sums
// is made of the totals once more; who else reads it keeps what it read. A
// mean over nothing, M = 0, is 0 with gradient 0: count_share gives 1.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_SHARE_COUNTS_H_
#define HALFTONE_PASSES_DIFFERENTIATE_SHARE_COUNTS_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

// In train and eval.
class ShareCounts : public Pass {
 public:
  absl::string_view name() const override { return "share-counts"; }
  // Errors (kModel): those of FindDenominator (graph/schema/denominators.h);
  // no feed has samples.
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_SHARE_COUNTS_H_
