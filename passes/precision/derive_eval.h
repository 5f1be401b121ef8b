// derive-eval: clones the entry `eval` from the forward part of `train`, in
// train's precision. Ops that behave otherwise at test time are replaced as
// their schemas say (ToTest): batch norm by its running statistics, dropout by
// nothing, or, where the loss or a metric names what it makes, by assign.
//
//   before
//     entry train {
//       feed x : f16[B,16]
//       b: batch_norm(X=x, Scale=s, Bias=t, Mean=m, Variance=v) -> (Y=b : f16[B,16], BatchMean=..., ...)   forward f16 GRAY_ALL_LOW
//       d: dropout(X=b, ...) -> (Out=d : f16[B,16])   forward f16 GRAY_ALL_LOW <- b
//       h: relu(X=d) -> (Out=h : f16[B,16])   forward f16 GRAY_ALL_LOW <- d
//     }
//   after (h is an output of the model): in addition
//     entry eval {
//       feed x : f16[B,16]
//       b: scale_bias(X=x, Scale=s, Bias=t, Mean=m, Variance=v) -> (Y=b : f16[B,16])   forward f16 GRAY_ALL_LOW
//       h: relu(X=b) -> (Out=h : f16[B,16])   forward f16 GRAY_ALL_LOW <- d
//       h.cast_fp32: cast(X=h) -> (Out=h.cast_fp32 : f32[B,16]) {to=f32}   forward f32 SCHEMA <- h
//       result h = h.cast_fp32
//     }
//
// Loss and metrics stay; there are no commits. Results are the model's
// outputs, low ones through their up-cast. A program that has an eval entry
// is left alone.
#ifndef HALFTONE_PASSES_PRECISION_DERIVE_EVAL_H_
#define HALFTONE_PASSES_PRECISION_DERIVE_EVAL_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class DeriveEval : public Pass {
 public:
  // Without `keep_train` only eval stays: a compile without an optimizer.
  explicit DeriveEval(bool keep_train) : keep_train_(keep_train) {}

  absl::string_view name() const override { return "derive-eval"; }
  // Errors (kModel): an output or an op needs a value that exists in training
  // only.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  bool keep_train_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_DERIVE_EVAL_H_
