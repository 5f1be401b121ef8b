// Element-wise ops in one pass over memory.
#include <algorithm>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/fusions/families.h"
#include "graph/ir/program.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace fusions {
namespace {

using Context = FusionPattern::Context;

// A kernel keeps one running value per op in registers.
constexpr size_t kMostOps = 16;

// All of one type, of an op that makes one value.
bool IsOfType(const Block& block, const Op& op, TypeId type) {
  const auto has_type = [&](ValueId v) { return block.type_id(v) == type; };
  return has_type(op.out(0)) &&
         std::all_of(op.inputs.all().begin(), op.inputs.all().end(), has_type);
}

bool IsEnd(const Context& last) {
  const TypeId type = last.block.type_id(last.op.out(0));
  return IsFloat(last.block.program().type(type).dtype) &&
         IsOfType(last.block, last.op, type);
}

void CollectLinks(const Block& block, IsHeld held, FusionGroup* group) {
  const TypeId type = block.type_id(block.op(group->ops()[0]).out(0));
  for (size_t i = 0; i < group->ops().size(); ++i) {
    const OpId reader = group->ops()[i];
    for (ValueId input : block.op(reader).inputs.all()) {
      const OpId producer = OnlyFor(block, reader, input, held);
      if (!producer.valid() || group->ops().size() == kMostOps ||
          group->Contains(producer) ||
          !IsOfType(block, block.op(producer), type) ||
          !JoinsChains(*block.op(producer).schema)) {
        continue;
      }
      group->Add(producer);
    }
  }
}

// What stands before the relu of a pattern.
FusionPattern WithNorms(FusionPattern pattern) {
  return std::move(
      pattern.Hidden("add", "elementwise_add", {"relu.X"})
          .Optional()
          .If(AddsTwo)
          .Hidden("norm", "scale_bias", {"add.X", "add.Y", "relu.X"})
          .Hidden("other_norm", "scale_bias", {"add.Y"})
          .Optional()
          .KeyedBy("norm.X"));
}

}  // namespace

bool JoinsChains(const OpSchema& op) {
  // The one type variable, or one that is it where nothing else is said.
  const auto varies = [&op](const Slot& slot) {
    return slot.type_var == 0 ||
           (slot.type_var > 0 &&
            op.type_vars()[slot.type_var].default_to == op.type_vars()[0].name);
  };
  return op.element_wise() && !op.view() && !op.no_merge() &&
         !op.inputs().empty() && op.outputs().size() == 1 &&
         std::all_of(op.inputs().begin(), op.inputs().end(), varies) &&
         varies(op.outputs()[0]);
}

FusionPattern NormElementwise() {
  return WithNorms(FusionPattern("norm_elementwise",
                                 "scale_bias(X), + Y or + scale_bias(Y) or "
                                 "neither, and relu or not")
                       .Last("relu", "relu")
                       .Optional());
}

FusionPattern NormElementwiseBits() {
  return WithNorms(FusionPattern("norm_elementwise_bits",
                                 "Out = relu(scale_bias(X), + Y or + "
                                 "scale_bias(Y) or neither), relu_bits(Out)")
                       .Last("bits", "relu_bits")
                       .Producer("relu", "relu", {"bits.Out"}));
}

FusionPattern NormGradApplyTwo() {
  return FusionPattern("norm_grad_apply_two",
                       "bn_grad_apply(X, YGrad) of two norms whose results "
                       "were added, in one pass over YGrad")
      .Last("apply", "bn_grad_apply")
      .Reader("other", "bn_grad_apply", {"apply.YGrad"})
      .If([](const Context& other) {
        const Op& apply = other.Of("apply");
        return other.In("YGrad") == apply.in(apply.schema->FindInput("YGrad"));
      })
      .KeyedBy("apply.X");
}

FusionPattern ElementwiseChain() {
  return FusionPattern("elementwise_chain",
                       "element-wise ops on tensors of one shape and dtype "
                       "that nobody else reads")
      .LastOf("last", JoinsChains)
      .If(IsEnd)
      .And(CollectLinks)
      .KeyedBy("last.");
}

}  // namespace fusions
}  // namespace halftone
