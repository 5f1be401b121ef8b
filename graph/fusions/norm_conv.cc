// Convolutions with batch norm around them: a tile is in registers while a norm
// takes its sums, and what a norm and its relu make before the next convolution
// is never in memory.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// What libraries have no engine for otherwise.
bool IsPlainWithoutStrides(const Context& conv) {
  const auto& strides = AttrAs<std::vector<int64_t>>(conv.op, "strides");
  return IsPlain(conv) &&
         std::all_of(strides.begin(), strides.end(),
                     [](int64_t stride) { return stride == 1; });
}

// Whether a bn_grad_reduce is of the mask's gradient and of the norm.
bool IsSumsOf(const Context& norm, const Op& sums) {
  const Context reduce = {norm.block, sums, norm.group, norm.held};
  return reduce.In("YGrad") == norm.Of("mask").out(0) &&
         norm.In("X") == reduce.In("X") &&
         norm.In("Mean") == reduce.In("BatchMean") &&
         norm.In("Variance") == reduce.In("BatchVariance");
}

// Another norm, of sums of its own.
bool HasSums(const Context& norm) {
  const auto& uses = norm.block.value(norm.Of("mask").out(0)).uses;
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Op& op = norm.block.op(use.op);
    return op.schema->name() == "bn_grad_reduce" && IsSumsOf(norm, op);
  });
}
bool AreOfOtherNorm(const Context& sums) {
  return sums.group.Has("other_norm") &&
         IsSumsOf({sums.block, sums.Of("other_norm"), sums.group, sums.held},
                  sums.op);
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
  return IsSumsOf(norm, norm.Of("sums"));
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

// The same at the end of a block, whose result others read, too: their gradient
// is added on the way. The sign is that of the sum in f32: where forward, which
// rounds it, makes 0 of a sum above that, the gradient passes.
FusionPattern ConvGradAddNorm() {
  return FusionPattern(
             "conv_grad_add_norm",
             "bn_grad_reduce(X, relu_grad(relu(scale_bias(X) + Y), "
             "conv2d_grad_input(OutputGrad, Filter))), where a gradient may be "
             "added to the convolution's; for one norm, or for two: Y is a "
             "scale_bias, too")
      .Last("sums", "bn_grad_reduce")
      .Producer("mask", "relu_grad", {"sums.YGrad"})
      .Hidden("parts", "sum", {"mask.OutGrad"})
      .Optional()
      .If(AddsTwo)
      .Hidden("conv", "conv2d_grad_input",
              {"parts.X", "parts.X[1]", "mask.OutGrad"})
      .If(IsPlainWithoutStrides)
      .Hidden("relu", "relu", {"mask.Out"})
      .Hidden("add", "elementwise_add", {"relu.X"})
      .If(AddsTwo)
      .Hidden("norm", "scale_bias", {"add.X", "add.Y"})
      .If(IsThatOfSums)
      .Hidden("other_norm", "scale_bias", {"add.X", "add.Y"})
      .Optional()
      .If(HasSums)
      .Reader("other_sums", "bn_grad_reduce", {"mask.XGrad"})
      .Optional()
      .If(AreOfOtherNorm)
      .KeyedBy("conv.OutputGrad");
}

}  // namespace fusions
}  // namespace halftone
