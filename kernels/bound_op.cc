#include "kernels/bound_op.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "graph/ir/block.h"
#include "graph/ir/type.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {
namespace {

int Known(int slot) {
  HT_CHECK(slot >= 0, "no such slot");
  return slot;
}

}  // namespace

int64_t TensorDesc::bytes() const { return elements() * SizeOf(dtype); }

std::string ToString(const TensorDesc& desc) {
  return absl::StrCat(
      Name(desc.dtype), "[", absl::StrJoin(desc.dims, ","), "]",
      desc.layout == Layout::kRowMajor ? "" : " @channels_last");
}

TensorDesc Bind(const TensorType& type, const SymbolValues& symbols) {
  TensorDesc desc;
  desc.dtype = type.dtype;
  if (type.sharded) {
    desc.dims = {
        ShardElements(type.Elements().Evaluate(symbols), symbols.shards)};
    return desc;
  }
  desc.layout = type.layout;
  for (const Dim& dim : type.dims) desc.dims.push_back(dim.Evaluate(symbols));
  return desc;
}

BoundOp::BoundOp(const Block& block, const Op& op, const SymbolValues& symbols,
                 const BindContext& context)
    : block_(&block), op_(&op), symbols_(symbols), context_(context) {
  inputs_.reserve(op.inputs.all().size());
  for (ValueId v : op.inputs.all()) {
    inputs_.push_back(Bind(block.type(v), symbols));
  }
  outputs_.reserve(op.outputs.all().size());
  for (ValueId v : op.outputs.all()) {
    outputs_.push_back(Bind(block.type(v), symbols));
  }
}

const OpSchema& BoundOp::schema() const { return *op_->schema; }
absl::string_view BoundOp::name() const { return block_->name(*op_); }
const std::string& BoundOp::type() const { return schema().name(); }

bool BoundOp::Bool(absl::string_view name) const {
  return AttrAs<bool>(*op_, name);
}
int64_t BoundOp::Int(absl::string_view name) const {
  return AttrAs<int64_t>(*op_, name);
}
double BoundOp::Float(absl::string_view name) const {
  return AttrAs<double>(*op_, name);
}
const std::string& BoundOp::Str(absl::string_view name) const {
  return AttrAs<std::string>(*op_, name);
}
const std::vector<int64_t>& BoundOp::Ints(absl::string_view name) const {
  return AttrAs<std::vector<int64_t>>(*op_, name);
}
const std::vector<double>& BoundOp::Floats(absl::string_view name) const {
  return AttrAs<std::vector<double>>(*op_, name);
}
bool BoundOp::KnowsAttr(absl::string_view name) const {
  return schema().FindAttr(name) >= 0;
}

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
