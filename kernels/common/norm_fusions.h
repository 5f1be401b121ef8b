// Where fusions about batch norms (graph/fusions/elementwise.cc,
// relu_grad_sums.cc, max_pool.cc) find what they read among their inputs, and
// what they make among their outputs, by flat position; -1: it is made inside,
// or nobody reads it.
#ifndef HALFTONE_KERNELS_COMMON_NORM_FUSIONS_H_
#define HALFTONE_KERNELS_COMMON_NORM_FUSIONS_H_

#include <optional>
#include <vector>

#include "kernels/bound_op.h"
#include "kernels/common/pool_shape.h"

namespace halftone {
namespace kernels {

// Of a scale_bias.
struct NormAt {
  int x, scale, bias, mean, variance;
  float epsilon;

  explicit NormAt(const BoundOp& op);
};

// Of norm_elementwise and norm_elementwise_bits: relu(norms[0] + y).
struct NormElementwiseAt {
  bool add, relu;
  int y = -1;  // as it is, or what norms[1] is of
  int out = 0, bits = -1;
  std::vector<NormAt> norms;  // one or two

  explicit NormElementwiseAt(const BoundOp& fusion);
};

// Of a bn_grad_reduce.
struct NormSumsAt {
  int x, mean, variance, scale_grad, bias_grad;
  float epsilon;

  explicit NormSumsAt(const BoundOp& op);
};

// Of relu_grad_norm, relu_grad_norm_bits, recompute_relu_grad_norm and
// relu_grad_bias: g = relu_grad(relu, a + b).
struct ReluGradSumsAt {
  bool bits;  // `relu` is those of what it made
  int relu, a, b = -1, g;
  std::optional<NormAt> recomputed;  // what relu read, of norms[0].x
  std::vector<NormSumsAt> norms;     // one or two; of relu_grad_bias none
  int bias = -1;

  explicit ReluGradSumsAt(const BoundOp& fusion);
};

// Of norm_max_pool: the windows of relu(norm).
struct NormMaxPoolAt {
  NormAt norm;
  PoolShape shape;
  int out, argmax;

  explicit NormMaxPoolAt(const BoundOp& fusion);
};

// Of max_pool_grad_norm and max_pool_grad_apply: the gradient of pooling that
// the role "norm" is of.
struct PooledGradAt {
  PoolShape shape;
  int grad, argmax;

  explicit PooledGradAt(const BoundOp& fusion);
};

// Of a bn_grad_apply.
struct NormApplyAt {
  int x, y_grad, mean, a, b, c0;
  int x_grad;  // among the outputs

  explicit NormApplyAt(const BoundOp& op);
};

// Of norm_grad_apply_two.
struct NormGradApplyTwoAt {
  NormApplyAt norms[2];

  explicit NormGradApplyTwoAt(const BoundOp& fusion);
};

// Candidates' `supports`: channels are the second dim, innermost where there
// are bits, and what is read comes from outside.
bool SupportsNormElementwise(const BoundOp& fusion);
bool SupportsReluGradSums(const BoundOp& fusion);
bool SupportsNormMaxPool(const BoundOp& fusion);
bool SupportsMaxPoolGradNorm(const BoundOp& fusion);
bool SupportsNormGradApplyTwo(const BoundOp& fusion);
bool SupportsMaxPoolGradApply(const BoundOp& fusion);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_NORM_FUSIONS_H_
