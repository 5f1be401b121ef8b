// Maximum pooling of what a batch norm and its relu make, and the way back: a
// pooled image and a byte for each window are in memory, and nothing of the
// size of the norm's image but X and its gradient. In channels_last.
#include <string>
#include <utility>

#include "graph/fusions/families.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace fusions {
namespace {

using Context = FusionPattern::Context;

// Images of two dims, and the places of their maxima are known.
bool SaysWhereMaximaLie(const Context& pool) {
  return pool.op.outputs.has(pool.op.schema->FindOutput("Argmax")) &&
         pool.InType("X").rank() == 4;
}

// `last`: one of a split norm's gradient's parts, which alone reads it.
FusionPattern OfPooledGradient(std::string name, std::string last) {
  std::string formula =
      last + "(X, max_pool2d_grad(OutGrad, Argmax)), in channels_last";
  return FusionPattern(std::move(name), std::move(formula))
      .Last("norm", std::move(last))
      .Hidden("pool", "max_pool2d_grad", {"norm.YGrad"})
      .KeyedBy("norm.X");
}

}  // namespace

FusionPattern NormMaxPool() {
  return FusionPattern("norm_max_pool",
                       "pool2d(relu(scale_bias(X))), of maxima with their "
                       "places, in channels_last")
      .Last("pool", "pool2d")
      .If(SaysWhereMaximaLie)
      .Hidden("relu", "relu", {"pool.X"})
      .Hidden("norm", "scale_bias", {"relu.X"})
      .KeyedBy("norm.X");
}

FusionPattern MaxPoolGradNorm() {
  return OfPooledGradient("max_pool_grad_norm", "bn_grad_reduce");
}

FusionPattern MaxPoolGradApply() {
  return OfPooledGradient("max_pool_grad_apply", "bn_grad_apply");
}

}  // namespace fusions
}  // namespace halftone
