// append-backward: appends the ops that compute the gradient of every
// trainable parameter that the loss depends on, in the order in which a
// reverse sweep over the forward part finds them.
//
//   before (train)
//     w.cast_fp16: cast(X=w) -> (Out=w.cast_fp16 : f16[256,10]) {to=f16}
//     y: matmul(X=h, Y=w.cast_fp16) -> (Out=y : f16[B,10])
//     ...
//     loss.grad: gradient_seed(...) -> (Out=loss.grad : f32[])
//   after: in addition
//     ...
//     y.grad.1: matmul(X=h, Y=y.grad) -> (Out=w.cast_fp16.grad : f16[256,10]) {trans_x=true}   backward f16 GRADIENT_OF <- y
//     w.grad: cast(X=w.cast_fp16.grad) -> (Out=w.grad : f32[256,10]) {to=f32}   backward f32 GRADIENT_OF <- w.cast_fp16
//     gradient w = w.grad
//
// Casts are differentiated like any other op, so a gradient has the dtype of
// its value. The gradient of value v is called `v.grad`. What several readers
// contribute (`v.grad.1`, ...) meets in one n-ary sum, added in f32 and
// rounded once, as soon as the last contribution is there:
//
//     h.grad: sum(X=[h.grad.1, h.grad.2]) -> (Out=h.grad : f16[B,256])   backward f16 GRADIENT_OF <- h
//
// Where a masked mean divides by what the mask counts (mask_totals.h), what
// comes out of that is 0 on a rank that counts nothing, not 0 / 0:
//
//     total.grad: keep_counted(X=total.grad.1, Count=@local_count) -> (Out=total.grad : f32[])   backward f32 GRADIENT_OF <- total
//
// A parameter's gradient always is a value of its own, called so and recorded:
// later passes ask Entry::gradients(). Of other values nothing is kept: whose
// gradient one is says its op's GRADIENT_OF.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_APPEND_BACKWARD_H_
#define HALFTONE_PASSES_DIFFERENTIATE_APPEND_BACKWARD_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class AppendBackward : public Pass {
 public:
  explicit AppendBackward(bool refuse_unused = false)
      : refuse_unused_(refuse_unused) {}

  absl::string_view name() const override { return "append-backward"; }
  // Errors (kModel): no trainable parameter reaches the loss, or, where unused
  // ones are refused, one of them does not; a model's value
  // has the name of a parameter's gradient. kCompilerBug: no gradient seed.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  bool refuse_unused_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_APPEND_BACKWARD_H_
