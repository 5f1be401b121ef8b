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

#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class BucketAllreduce : public Pass {
 public:
  // `join_stranded`: a last bucket of its dtype that stays below the limit of
  // the first (a bias left alone) joins the one before it; false gives DDP's
  // own buckets.
  explicit BucketAllreduce(const proto::Dist& dist, bool join_stranded = true)
      : dist_(dist), join_stranded_(join_stranded) {}

  absl::string_view name() const override { return "bucket-allreduce"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  proto::Dist dist_;
  bool join_stranded_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_BUCKET_ALLREDUCE_H_
