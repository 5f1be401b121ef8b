// Convolutions with batch norm around them: a tile is in registers while a norm
// takes its sums, and what a norm and its relu make before the next convolution
// is never in memory.
#include <string>
#include <utility>

#include "graph/fusions/families.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace fusions {
namespace {

constexpr char kPrologue[] =
    "scale / sqrt(variance + epsilon) and what is left of bias, in f16";
constexpr char kPlainSums[] =
    "the batch's variance, from plain sums of x and x * x, which cancel where "
    "the mean is far from 0";

using Context = FusionPattern::Context;

// No groups and no bias; images of two dims and of one type and order.
bool IsPlain(const Context& conv) {
  if (AttrAs<int64_t>(conv.op, "groups") != 1 || conv.In("Bias").valid()) {
    return false;
  }
  const TensorType* before = nullptr;
  for (const char* slot : {"Input", "OutputGrad"}) {
    if (!conv.In(slot).valid()) continue;
    const TensorType& image = conv.InType(slot);
    if (image.rank() != 4) return false;
    if (before != nullptr &&
        (before->dtype != image.dtype || before->layout != image.layout)) {
      return false;
    }
    before = &image;
  }
  return true;
}

FusionPattern GradFilterOfNorm(std::string name) {
  return FusionPattern(std::move(name),
                       "conv2d_grad_filter(relu(scale_bias(X)), OutputGrad)")
      .Last("conv", "conv2d_grad_filter")
      .If(IsPlain)
      .Hidden("relu", "relu", {"conv.Input"})
      .Hidden("norm", "scale_bias", {"relu.X"})
      .KeyedBy("conv.Input");
}

}  // namespace

bool IsThatOfSums(const Context& norm) {
  const Context sums = {norm.block, norm.Of("sums"), norm.group, norm.held};
  return norm.In("X") == sums.In("X") &&
         norm.In("Mean") == sums.In("BatchMean") &&
         norm.In("Variance") == sums.In("BatchVariance");
}

FusionPattern NormConvStats() {
  return FusionPattern("norm_conv_stats",
                       "channel_stats(conv2d(relu(scale_bias(X)), Filter))")
      .Last("stats", "channel_stats")
      .Producer("conv", "conv2d", {"stats.X"})
      .If(IsPlain)
      .Hidden("relu", "relu", {"conv.Input"})
      .Hidden("norm", "scale_bias", {"relu.X"})
      .KeyedBy("conv.Input")
      .Rounds(std::string(kPrologue) + "; " + kPlainSums);
}

FusionPattern ConvStats() {
  return FusionPattern("conv_stats", "channel_stats(conv2d(Input, Filter))")
      .Last("stats", "channel_stats")
      .Producer("conv", "conv2d", {"stats.X"})
      .If(IsPlain)
      .KeyedBy("conv.Input")
      .Rounds(kPlainSums);
}

FusionPattern NormConvGradFilter() {
  return GradFilterOfNorm("norm_conv_grad_filter").Rounds(kPrologue);
}

FusionPattern RecomputeConvGradFilter() {
  return GradFilterOfNorm("recompute_conv_grad_filter");
}

// The sign is that of the norm, made again from X.
FusionPattern ConvGradNorm() {
  return FusionPattern("conv_grad_norm",
                       "bn_grad_reduce(X, relu_grad(relu(scale_bias(X)), "
                       "conv2d_grad_input(OutputGrad, Filter)))")
      .Last("sums", "bn_grad_reduce")
      .Producer("mask", "relu_grad", {"sums.YGrad"})
      .Hidden("conv", "conv2d_grad_input", {"mask.OutGrad"})
      .If(IsPlain)
      .Hidden("relu", "relu", {"mask.Out"})
      .Hidden("norm", "scale_bias", {"relu.X"})
      .If(IsThatOfSums)
      .KeyedBy("conv.OutputGrad");
}

}  // namespace fusions
}  // namespace halftone
