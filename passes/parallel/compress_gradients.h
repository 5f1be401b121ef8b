// compress-gradients: of large gradients ranks exchange the largest elements
// alone, and keep the rest (deep gradient compression).
//
//   before (train)
//     gradients.f32.0: all_reduce(X=[w.grad, b.grad]) ->
//         (Out=[w.grad.reduced, b.grad.reduced]) {of="gradient"}
//     @found_inf: check_finite(F32=[w.grad.reduced, b.grad.reduced], ...) ->
//         (FoundInf=@found_inf, ...)
//     momentum.0: momentum(Param=[w, b], Grad=[w.grad.reduced,
//         b.grad.reduced], Velocity=[w.velocity, b.velocity], ...) ->
//         (ParamOut=[w.next, b.next], ...) {mu=0.9}
//   after
//     cell w.velocity : f32[784,256] slot(w) applied per_rank
//     cell w.residual : f32[784,256] slot(w) applied per_rank
//     entry train {
//       gradients.f32.0: all_reduce(X=[b.grad]) -> (Out=[b.grad.reduced]) {...}
//       @found_inf: check_finite(F32=[w.grad, b.grad.reduced], ...) ->
//           (FoundInf=@found_inf.own, ...)
//       @found_inf.combined: combine_checks(FirstBad=@first_bad.own, ...) ->
//           (FoundInf=@found_inf, ...)
//       momentum.0.sent: dgc(Weights=[w], Grad=[w.grad],
//           Velocity=[w.velocity], Residual=[w.residual], ...) ->
//           (Values=[w.sent : f32[200]], Indices=[w.places : i32[200]],
//           VelocityOut=[w.velocity.next], ...) {keep=[200], mu=0.9}
//       momentum.0.sum: dgc_sum(Values=[w.sent], Indices=[w.places], Like=[w])
//           -> (Out=[w.sum : f32[784,256]])
//       momentum.0.sgd: sgd(Param=[w], Grad=[w.sum], ...) -> (...)
//       momentum.0: momentum(Param=[b], Grad=[b.grad.reduced], ...) -> (...)
//
// As in Paddle, parameters of less than 16384 elements, or that are not f32,
// are updated by momentum with whole gradients. What is sent is part of the
// plan, so stages of a run that send more or less have entries of their own
// (graph/ir/train_entries.h).
//
// It runs on the finished program, as local-sgd does.
#ifndef HALFTONE_PASSES_PARALLEL_COMPRESS_GRADIENTS_H_
#define HALFTONE_PASSES_PARALLEL_COMPRESS_GRADIENTS_H_

#include "graph/ir/program.h"
#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

// Whether a parameter is one of those.
bool IsCompressedByDgc(const TensorType& parameter);

class CompressGradients : public Pass {
 public:
  explicit CompressGradients(const proto::Dist& dist) : dist_(dist) {}

  absl::string_view name() const override { return "compress-gradients"; }
  // Errors (kModel): something in the model has a residual's name.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  proto::Dist dist_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_COMPRESS_GRADIENTS_H_
