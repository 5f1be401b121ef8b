// fold-transposes: products read their factors as they lie.
//
//   before
//     wt: transpose(X=w) -> (Out=wt : f32[8,3]) {axis=[1, 0]}
//     y: matmul(X=x, Y=wt) -> (Out=y : f32[B,3])
//     y.grad.1: matmul(X=x, Y=y.grad) -> (Out=wt.grad : f32[8,3]) {trans_x=true}
//     wt.grad: transpose(X=wt.grad) -> (Out=w.grad : f32[3,8]) {axis=[1, 0]}
//   after
//     y: matmul(X=x, Y=w) -> (Out=y : f32[B,3]) {trans_y=true}   origins=[wt]
//     y.grad.1: matmul(X=y.grad, Y=x) -> (Out=w.grad : f32[3,8]) {trans_x=true}
//         origins=[wt.grad]
//
// A linear layer of PyTorch's is such a pair in ONNX. A matmul reads what a
// transpose of the last two dims reads, the factor's flag turned, whoever else
// reads the transpose. The transpose of a product that nothing else reads is
// the product of the factors in the other order; not where there is a bias,
// which is of columns. Between the two may stand element-wise ops of one value
// that only the other reads, a cast or a scale: their results get another name,
// k.transposed, for they have other dims. Beside products, a transpose of a
// transpose is one of what that one reads, or nothing, and one that moves dims
// of size 1 alone is a reshape. What loses its last reader thereby goes; held
// values stay.
//
// Nothing is left for a second run. Each transpose is looked at once, after
// those before it.
#ifndef HALFTONE_PASSES_LOWER_FOLD_TRANSPOSES_H_
#define HALFTONE_PASSES_LOWER_FOLD_TRANSPOSES_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class FoldTransposes : public Pass {
 public:
  absl::string_view name() const override { return "fold-transposes"; }
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_FOLD_TRANSPOSES_H_
