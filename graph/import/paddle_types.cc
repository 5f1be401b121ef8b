#include "graph/import/paddle_types.h"

#include <vector>

#include "graph/base/dtype.h"
#include "graph/io/model_values.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/verify/limits.h"

namespace halftone {

PaddleTypes::PaddleTypes()
    : program_(std::make_unique<Program>()),
      block_(&program_->AddEntry(kTrainEntry).block()) {}

void PaddleTypes::AddSource(
    const std::string& value, proto::DataType dtype,
    const google::protobuf::RepeatedField<int64_t>& dims) {
  TensorType type;
  type.dtype = FromProto(dtype);
  for (const int64_t dim : dims) {
    const bool batch = dim == -1 && type.dims.empty();
    if (dim < 1 && !batch) return;
    type.dims.push_back(batch ? Dim::Symbol(program_->Symbol("B")) : Dim(dim));
  }
  const bool fits = type.dtype != DType::kInvalid && BadDims(type).empty();
  if (fits && !block_->FindValue(value).valid()) block_->AddFeed(value, type);
}

void PaddleTypes::AddNode(const proto::OpNode& node) {
  const OpSchema* const schema = Ops().Find(node.type());
  if (schema == nullptr) return;
  OpBuilder builder(block_, node.type());
  for (const proto::SlotVars& in : node.in()) {
    std::vector<ValueId> values;
    for (const std::string& var : in.var()) {
      values.push_back(block_->FindValue(var));
      if (!values.back().valid()) return;
    }
    builder.In(in.slot(), values);
  }
  for (const proto::SlotVars& out : node.out()) {
    for (const std::string& var : out.var()) {
      if (block_->FindValue(var).valid()) return;
      builder.Out(out.slot(), var);
    }
  }
  for (const proto::Attribute& attr : node.attr()) {
    absl::StatusOr<AttrValue> value = FromProto(attr);
    if (!value.ok()) return;
    builder.Attr(attr.name(), *std::move(value));
  }
  if (schema->stream_attr() >= 0) builder.Attr("stream", int64_t{1});
  builder.Build().IgnoreError();
}

const TensorType* PaddleTypes::TypeOf(const std::string& value) const {
  const ValueId id = block_->FindValue(value);
  return id.valid() ? &block_->type(id) : nullptr;
}

const paddle::VarDesc* PaddleTypes::Refined(const paddle::VarDesc* declared,
                                            const std::string& value) {
  if (declared == nullptr || !declared->type().has_lod_tensor()) {
    return declared;
  }
  const auto known = refined_.find(value);
  if (known != refined_.end()) return &known->second;
  const TensorType* const type = TypeOf(value);
  if (type == nullptr) return declared;
  paddle::VarDesc& var = refined_[value] = *declared;
  auto& dims = *var.mutable_type()
                    ->mutable_lod_tensor()
                    ->mutable_tensor()
                    ->mutable_dims();
  dims.Clear();
  for (const Dim& dim : type->dims) {
    dims.Add(dim.is_constant() ? dim.coefficient() : -1);
  }
  return &var;
}

}  // namespace halftone
