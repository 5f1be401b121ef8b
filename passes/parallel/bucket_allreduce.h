// bucket-allreduce: joins gradient reductions into few large ones, in the
// order in which backward makes the gradients, so that communication starts
// early and each launch is worth its latency.
//
//   before (train)
//     fc.b.low.grad.reduced: all_reduce(X=[fc.b.low.grad]) ->
//         (Out=[fc.b.low.grad.reduced : f16[10]]) {of="gradient"}
//     fc.b.grad: cast(X=fc.b.low.grad.reduced) -> (Out=fc.b.grad) {to=f32}
//     ...
//     fc.w.low.grad.reduced: all_reduce(X=[fc.w.low.grad]) ->
//         (Out=[fc.w.low.grad.reduced : f16[1568,10]]) {of="gradient"}
//   after
//     ...
//     gradients.f16.0: all_reduce(X=[fc.b.low.grad, fc.w.low.grad]) ->
//         (Out=[fc.b.low.grad.reduced, fc.w.low.grad.reduced])
//         {of="gradient", bucket=0}
//     ...
//     fc.b.grad: cast(X=fc.b.low.grad.reduced) -> (Out=fc.b.grad) {to=f32}
//
// A bucket holds one dtype. It is closed as soon as it has reached its limit,
// which is smaller for the first of each dtype (the reduction starts while
// most of backward is still to come): DDP's rule. It stands where its last
// member became ready. What reads reduced gradients moves behind all of
// backward. Sizes are those of the elements, without the planner's padding.
#ifndef HALFTONE_PASSES_PARALLEL_BUCKET_ALLREDUCE_H_
#define HALFTONE_PASSES_PARALLEL_BUCKET_ALLREDUCE_H_

#include <cstdint>

#include "passes/pass.h"

namespace halftone {
namespace passes {

class BucketAllreduce : public Pass {
 public:
  struct Settings {
    bool fuse = true;  // false: every gradient keeps its own reduction
    int64_t first_bytes = 1 << 20;
    int64_t bytes = 32 << 20;
    // A last bucket of its dtype that stays below `first_bytes` (a bias left
    // alone) joins the one before it; false gives DDP's own buckets.
    bool join_stranded = true;
  };
  explicit BucketAllreduce(const Settings& settings) : settings_(settings) {}

  absl::string_view name() const override { return "bucket-allreduce"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  Settings settings_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_BUCKET_ALLREDUCE_H_
