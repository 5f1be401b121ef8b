// keep-outputs: where only some values are wanted (predict), the forward
// program keeps what they need and nothing else: no loss, no metrics, no feed
// that they do not read. Precisions and casts stay as all of it gave them.
//
//   before (h is wanted)
//     loss loss over ce
//     feed x : f32[B,16]
//     feed label : i64[B]
//     h: matmul(X=x, Y=w) -> (Out=h : f32[B,10])   forward f32 LEVEL
//     ce: softmax_with_cross_entropy(Logits=h, Label=label) -> ...
//     loss: mean(X=ce) -> (Out=loss : f32[])   forward f32 LEVEL
//   after
//     output h
//     feed x : f32[B,16]
//     h: matmul(X=x, Y=w) -> (Out=h : f32[B,10])   forward f32 LEVEL
//
// Before derive-eval, which makes results of the outputs.
#ifndef HALFTONE_PASSES_PRECISION_KEEP_OUTPUTS_H_
#define HALFTONE_PASSES_PRECISION_KEEP_OUTPUTS_H_

#include <string>
#include <utility>
#include <vector>

#include "passes/pass.h"

namespace halftone {
namespace passes {

class KeepOutputs : public Pass {
 public:
  // The values that are wanted; none: the pass changes nothing. Errors of Run:
  // a name that is no value of train (kUsage).
  explicit KeepOutputs(std::vector<std::string> names)
      : names_(std::move(names)) {}

  absl::string_view name() const override { return "keep-outputs"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  std::vector<std::string> names_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_KEEP_OUTPUTS_H_
