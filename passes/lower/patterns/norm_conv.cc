#include "passes/lower/patterns/norm_conv.h"

#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {

bool IsFusedConvImage(const TensorType& type) {
  return type.dtype == DType::kF16 && type.layout == Layout::kChannelsLast &&
         type.rank() == 4;
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
