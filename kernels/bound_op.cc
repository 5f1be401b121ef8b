#include "kernels/bound_op.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"

namespace halftone {
namespace kernels {
namespace {

int Known(int slot) {
  HT_CHECK(slot >= 0, "no such slot");
  return slot;
}

}  // namespace

std::string ToString(const TensorDesc& desc) {
  return absl::StrCat(
      Name(desc.dtype), "[", absl::StrJoin(desc.dims, ","), "]",
      desc.layout == Layout::kRowMajor ? "" : " @channels_last");
}

TensorDesc Bind(const TensorType& type, const SymbolValues& symbols) {
  TensorDesc desc;
  desc.dtype = type.dtype;
  desc.layout = type.layout;
  for (const Dim& dim : type.dims) desc.dims.push_back(dim.Evaluate(symbols));
  return desc;
}

BoundOp::BoundOp(const Block& block, const Op& op, const SymbolValues& symbols,
                 const BindContext& context)
    : block_(&block), op_(&op), symbols_(symbols), context_(context) {
  for (ValueId v : op.inputs.all()) {
    inputs_.push_back(Bind(block.type(v), symbols));
  }
  for (ValueId v : op.outputs.all()) {
    outputs_.push_back(Bind(block.type(v), symbols));
  }
}

absl::string_view BoundOp::name() const { return block_->name(*op_); }

int BoundOp::InputIndex(absl::string_view slot) const {
  const int s = Known(schema().FindInput(slot));
  return op_->inputs.has(s) ? op_->inputs.begin(s) : -1;
}
int BoundOp::OutputIndex(absl::string_view slot) const {
  const int s = Known(schema().FindOutput(slot));
  return op_->outputs.has(s) ? op_->outputs.begin(s) : -1;
}
int BoundOp::InputCount(absl::string_view slot) const {
  const int s = Known(schema().FindInput(slot));
  return op_->inputs.end(s) - op_->inputs.begin(s);
}
int BoundOp::OutputCount(absl::string_view slot) const {
  const int s = Known(schema().FindOutput(slot));
  return op_->outputs.end(s) - op_->outputs.begin(s);
}

}  // namespace kernels
}  // namespace halftone
