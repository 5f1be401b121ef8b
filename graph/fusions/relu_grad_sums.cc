// Sums over a relu's gradient, taken while that, which others read, too, is on
// its way to memory. In channels_last.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/fusions/families.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace fusions {
namespace {

using Context = FusionPattern::Context;

bool AllAre(const Block& block, absl::Span<const ValueId> values, TypeId type) {
  return std::all_of(values.begin(), values.end(), [&](ValueId value) {
    return block.type_id(value) == type;
  });
}

// Whether channels lie side by side.
bool HasInnerChannels(const TensorType& type) {
  return IsFloat(type.dtype) &&
         (type.rank() == 2 ||
          (type.rank() == 4 && type.layout == Layout::kChannelsLast));
}

// The sums over all dims but the second.
bool IsChannelSum(const Context& sum) {
  const int rank = sum.InType("X").rank();
  const auto& axes = AttrAs<std::vector<int64_t>>(sum.op, "dim");
  return !AttrAs<bool>(sum.op, "keep_dim") &&
         !AttrAs<bool>(sum.op, "reduce_all") && rank >= 2 &&
         static_cast<int>(axes.size()) == rank - 1 &&
         std::none_of(axes.begin(), axes.end(), [rank](int64_t axis) {
           return axis == 1 || axis == 1 - rank;
         });
}

// What the norm read is another image of its gradient's type.
bool ReadsAnImageLikeItsGradient(const Context& sums) {
  const ValueId x = sums.In("X"), gradient = sums.In("YGrad");
  return x != gradient && sums.block.type_id(x) == sums.block.type_id(gradient);
}

// [N, C] or [N, C, H, W] in channels_last; the gradients and what relu made
// (bits of it have their own) are of one type. False, too, where other
// element-wise ops make OutGrad for it alone: they are better off in a chain
// with it, as what they make is then neither written nor read.
bool IsWorthSums(const Context& mask) {
  const ValueId gradient = mask.op.out(0);
  const TypeId type = mask.block.type_id(gradient);
  const ValueId out = mask.In("Out");
  if (!HasInnerChannels(mask.block.type(gradient)) ||
      mask.block.type_id(mask.In("OutGrad")) != type ||
      (out.valid() && mask.block.type_id(out) != type)) {
    return false;
  }
  const OpId before =
      OnlyFor(mask.block, mask.op.id, mask.In("OutGrad"), mask.held);
  if (!before.valid()) return true;
  const Op& op = mask.block.op(before);
  if (!op.schema->element_wise()) return true;
  return op.schema->name() == "sum" &&
         AddsTwo({mask.block, op, mask.group, mask.held});
}

// `mask`: relu_grad, of `of` and OutGrad.
FusionPattern MaskAndSums(std::string name, std::string mask,
                          absl::string_view of) {
  return FusionPattern(
             std::move(name),
             absl::StrCat("bn_grad_reduce(X, ", mask, "(", of,
                          ", OutGrad)), for one norm or two; OutGrad may be "
                          "the sum of two"))
      .Last("sums", "bn_grad_reduce")
      .If(ReadsAnImageLikeItsGradient)
      .Producer("mask", std::move(mask), {"sums.YGrad"})
      .If(IsWorthSums)
      .Hidden("parts", "sum", {"mask.OutGrad"})
      .Optional()
      .If(AddsTwo)
      .Reader("other_sums", "bn_grad_reduce", {"mask.XGrad"})
      .Optional()
      .If([](const Context& other) {
        return other.In("YGrad") == other.Of("mask").out(0) &&
               ReadsAnImageLikeItsGradient(other);
      })
      .KeyedBy("mask.XGrad");
}

}  // namespace

bool AddsTwo(const Context& sum) {
  const auto parts = sum.op.inputs.all();
  return parts.size() == 2 && parts[0] != parts[1] &&
         AllAre(sum.block, parts, sum.block.type_id(sum.op.out(0)));
}

FusionPattern RecomputeReluGradNorm() {
  return MaskAndSums("recompute_relu_grad_norm", "relu_grad",
                     "relu(scale_bias(X))")
      .Hidden("relu", "relu", {"mask.Out"})
      .Hidden("norm", "scale_bias", {"relu.X"})
      .If(IsThatOfSums);
}

FusionPattern ReluGradNorm() {
  return MaskAndSums("relu_grad_norm", "relu_grad", "Out");
}

FusionPattern ReluGradNormBits() {
  return MaskAndSums("relu_grad_norm_bits", "relu_grad_bits", "Bits");
}

FusionPattern ReluGradBias() {
  return FusionPattern("relu_grad_bias",
                       "reduce_sum(relu_grad(Out, OutGrad)) over all dims but "
                       "channels; OutGrad may be the sum of two")
      .Last("bias", "reduce_sum")
      .If(IsChannelSum)
      .Producer("mask", "relu_grad", {"bias.X"})
      .If(IsWorthSums)
      .Hidden("parts", "sum", {"mask.OutGrad"})
      .Optional()
      .If(AddsTwo)
      .KeyedBy("mask.Out");
}

}  // namespace fusions
}  // namespace halftone
