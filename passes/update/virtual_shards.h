// virtual-shards: a step of V shards, a micro-batch each, which are summed in
// one fixed binary tree. A rank has consecutive shards that make a subtree, and
// adds them as a counter counts; the reduction over the ranks goes on in the
// same tree (order=tree), so that the sums are the same bits on any number of
// ranks that divides V. Shards before a rank's last run the entry `accumulate`,
// as with gradient-merge.
//
//   before (train)
//     gradients.f32.0: all_reduce(X=[w.grad]) -> ... {order="tree"}
//     totals.norms: combine_stats(Mean=[bn.BatchMean], ...) -> ...
//   after, of 4 shards
//     cell w.grad.sum.0 : f32[4,3] accumulator always per_rank
//     cell w.grad.sum.1 : f32[4,3] accumulator always per_rank
//     entry train {
//       w.grad.summed: tree_sum(X=w.grad, Partials=[w.grad.sum.0,
//           w.grad.sum.1], Term=@shard) -> (Out=w.grad.summed : f32[4,3])
//       gradients.f32.0: all_reduce(X=[w.grad.summed]) -> ...
//       bn.summed: tree_combine_stats(Mean=bn.BatchMean, ...) -> ...
//       totals.norms: combine_stats(Mean=[bn.summed.Mean], ...) -> ...
//     entry accumulate {
//       w.grad.added: tree_accumulate(X=w.grad, Partials=[w.grad.sum.0,
//           w.grad.sum.1], Term=@shard) -> (Out=[w.grad.added.0 : f32[4,3],
//           w.grad.added.1 : f32[4,3]])
//       commit w.grad.sum.0 <- w.grad.added.0
//       commit w.grad.sum.1 <- w.grad.added.1
//
// `@shard` is the shard's number on its rank. Which partial sums are there
// follows from it, so nothing is cleared. Running statistics are updated once a
// step, from those of all shards.
#ifndef HALFTONE_PASSES_UPDATE_VIRTUAL_SHARDS_H_
#define HALFTONE_PASSES_UPDATE_VIRTUAL_SHARDS_H_

#include <cstdint>

#include "passes/pass.h"

namespace halftone {
namespace passes {

class VirtualShards : public Pass {
 public:
  // `shards`: a power of two; 0: there are none.
  explicit VirtualShards(int64_t shards) : shards_(shards) {}

  absl::string_view name() const override { return "virtual-shards"; }
  // Errors (kModel): the loss has denominators, whose totals would be needed
  // before the first shard.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  int64_t shards_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_VIRTUAL_SHARDS_H_
