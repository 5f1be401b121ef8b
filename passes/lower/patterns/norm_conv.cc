#include "passes/lower/patterns/norm_conv.h"

#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {

bool IsFusedConvImage(const TensorType& type) {
  return type.dtype == DType::kF16 && type.layout == Layout::kChannelsLast &&
         type.rank() == 4;
}

bool IsOp(const Block& block, OpId op, absl::string_view type) {
  return op.valid() && block.op(op).schema->name() == type;
}

ValueId InputOf(const Op& op, absl::string_view slot) {
  const int index = op.schema->FindInput(slot);
  return index >= 0 && op.inputs.has(index) ? op.in(index) : ValueId();
}

bool IsFusedConv(const Block& block, OpId id, absl::string_view type) {
  if (!IsOp(block, id, type)) return false;
  const Op& op = block.op(id);
  if (AttrAs<int64_t>(op, "groups") != 1 || InputOf(op, "Bias").valid()) {
    return false;
  }
  // What is an image: all but the filter.
  for (const char* slot : {"Input", "OutputGrad"}) {
    const ValueId value = InputOf(op, slot);
    if (value.valid() && !IsFusedConvImage(block.type(value))) return false;
  }
  return true;
}

NormRelu NormReluFor(const Block& block, OpId reader, ValueId value,
                     const HeldValues& held) {
  const OpId relu = OnlyFor(block, reader, value, held);
  if (!IsOp(block, relu, "relu")) return {};
  const OpId norm = OnlyFor(block, relu, block.op(relu).in(0), held);
  if (!IsOp(block, norm, "scale_bias")) return {};
  return {norm, relu};
}

}  // namespace passes
}  // namespace halftone
