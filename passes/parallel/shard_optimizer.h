// shard-optimizer: each rank holds and updates a shard of every parameter's
// optimizer state (ZeRO, stage 1).
//
//   before (train)
//     cell w : f32[784,256] parameter trainable applied
//     cell w.cast_fp16 : f16[784,256] derived(w) applied
//     gradients.f16.0: all_reduce(X=[w.low.grad]) ->
//         (Out=[w.low.grad.reduced : f16[784,256]]) {of="gradient"}
//     @found_inf: check_finite(Low=[w.low.grad.reduced], ...) -> (...)
//     momentum.0: momentum(Param=[w], Grad=[w.low.grad.reduced], ...) ->
//         (ParamOut=[w.next], VelocityOut=[...], LowOut=[w.cast_fp16.next])
//     commit w.cast_fp16 <- w.cast_fp16.next
//   after
//     cell w : f32[784,256] @shard parameter trainable applied sharded
//     gradients.f16.0: reduce_scatter(X=[w.low.grad]) ->
//         (Out=[w.low.grad.reduced : f16[784,256] @shard]) {of="gradient"}
//     @found_inf: check_finite(Low=[w.low.grad.reduced], ...) ->
//         (FoundInf=@found_inf.shard, ...)
//     @found_inf.combined: combine_checks(FirstBad=@first_bad.shard, ...) ->
//         (FoundInf=@found_inf, ...)
//     momentum.0: momentum(Param=[w], ...) -> (..., LowOut=[
//         w.cast_fp16.next.shard : f16[784,256] @shard])
//     momentum.0.gathered: all_gather(X=[w.cast_fp16.next.shard]) ->
//         (Out=[w.cast_fp16.next : f16[784,256]])
//     commit w.cast_fp16 <- w.cast_fp16.next
//
// Sharded are the slots, averages, and parameters that nothing reads but their
// updates: FP32 copies beside low cells. Any other parameter stays whole; the
// update takes this rank's shard of it, and the new one is gathered. What
// evaluation reads of an average is gathered there, as are results.
//
// Where sums have an order (exact_order, virtual shards) every rank has added
// whole gradients: they stay all_reduce, checked and clipped as ever, and the
// update takes shards of them, too. State is spread, bits are as without.
//
// Every parameter is spread over all ranks, not each given to one: one large
// matrix would else be one rank's. It runs on the finished program, as ops from
// the reduction on go element by element: passes before know nothing of it.
#ifndef HALFTONE_PASSES_PARALLEL_SHARD_OPTIMIZER_H_
#define HALFTONE_PASSES_PARALLEL_SHARD_OPTIMIZER_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class ShardOptimizer : public Pass {
 public:
  absl::string_view name() const override { return "shard-optimizer"; }
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_SHARD_OPTIMIZER_H_
