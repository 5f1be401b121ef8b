#include "graph/import/onnx_graph.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/import/paddle_attrs.h"
#include "graph/io/model_values.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/verify/limits.h"

namespace halftone {
namespace {

TensorType TypeOfDims(DType dtype, absl::Span<const int64_t> dims) {
  TensorType type;
  type.dtype = IsFloat(dtype) ? DType::kF32 : dtype;
  type.dims.assign(dims.begin(), dims.end());
  return type;
}

// What a parameter has without --init.
proto::Init InitOf(const OnnxConstant* known, const proto::Parameter& param) {
  proto::Init init;
  const std::optional<double> all =
      known != nullptr ? known->Uniform() : std::nullopt;
  if (all.has_value() && std::abs(*all) <= 3e38) {
    init.set_constant(*all);
  } else if (param.trainable() && param.dims_size() >= 2) {
    init.mutable_kaiming_uniform()->set_a(std::sqrt(5.0));  // PyTorch's
  } else {
    init.set_constant(0);
  }
  return init;
}

// Whether one is the other's transpose, of one dtype.
bool IsTurned(const OnnxTensor& a, const OnnxTensor& b) {
  if (a.dims.size() != 2 || b.dims.size() != 2 || a.dims[0] != b.dims[1] ||
      a.dims[1] != b.dims[0] || a.bytes.size() != b.bytes.size() ||
      a.elements() == 0) {
    return false;
  }
  const int64_t rows = a.dims[0], columns = a.dims[1];
  const size_t size = a.bytes.size() / a.elements();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      if (a.bytes.substr((row * columns + column) * size, size) !=
          b.bytes.substr((column * rows + row) * size, size)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

proto::DataType ProtoOf(DType dtype) {
  switch (dtype) {
    case DType::kI32:
      return proto::I32;
    case DType::kI64:
      return proto::I64;
    case DType::kU8:
      return proto::U8;
    case DType::kBool:
      return proto::BOOL;
    default:
      return proto::F32;
  }
}

OnnxGraph::OnnxGraph(const OnnxFile& file)
    : file_(file),
      trained_(file.model.graph()),
      block_(&program_->AddEntry(kTrainEntry).block()) {}

OnnxValue* OnnxGraph::Find(const std::string& name) {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second.get();
}

bool OnnxGraph::Add(const std::string& name, OnnxValue value) {
  auto& place = values_[name];
  if (place != nullptr) return false;
  value.trained = value.initializer && value.tensor != nullptr &&
                  trained_.Is(*value.tensor, value.raw);
  place = std::make_unique<OnnxValue>(std::move(value));
  return true;
}

const OnnxConstant* OnnxGraph::Known(OnnxValue* value) {
  if (!value->constant.has_value() && value->tensor != nullptr) {
    const std::vector<int64_t> dims(value->tensor->dims().begin(),
                                    value->tensor->dims().end());
    if (KnownElements(dims) < 0) return nullptr;
    const auto tensor = ReadOnnxTensor(*value->tensor, value->raw, file_.path);
    if (tensor.ok()) value->constant = ConstantOf(*tensor);
  }
  return value->constant.has_value() ? &*value->constant : nullptr;
}

bool OnnxGraph::Folds(OnnxValue* value) {
  return Known(value) != nullptr && !value->trained;
}

absl::StatusOr<TensorType> OnnxGraph::TypeOf(OnnxValue* value) {
  if (!value->name.empty()) return TypeOf(value->name);
  if (value->constant.has_value()) {
    return TypeOfDims(value->constant->dtype, value->constant->dims);
  }
  if (value->tensor == nullptr) return ModelError("its type is not known");
  const std::vector<int64_t> dims(value->tensor->dims().begin(),
                                  value->tensor->dims().end());
  return TypeOfDims(FromOnnx(value->tensor->data_type()), dims);
}

const TensorType& OnnxGraph::TypeOf(const std::string& name) const {
  const ValueId value = block_->FindValue(name);
  if (value.valid()) return block_->type(value);
  return program_->cell(program_->FindCell(name)).type;
}

absl::StatusOr<std::string> OnnxGraph::Materialize(const std::string& wish,
                                                   OnnxValue* value) {
  if (!value->name.empty()) return value->name;
  const OnnxConstant* const known = Known(value);
  OnnxTensor tensor;
  if (value->tensor != nullptr) {
    HT_ASSIGN_OR_RETURN(tensor,
                        ReadOnnxTensor(*value->tensor, value->raw, file_.path));
  } else if (known != nullptr) {
    for (const Dim& one : known->ints) {
      if (one.is_constant()) continue;
      return ModelError("a size of the batch is computed with at run time");
    }
    tensor.dtype = known->dtype;
    tensor.dims = known->dims;
    tensor.owned = BytesOf(*known);
    tensor.bytes = tensor.owned;
  } else {
    return ModelError(value->sequence.empty() ? "it has no value"
                                              : "it is a sequence of tensors");
  }
  if (value->trained) {
    HT_ASSIGN_OR_RETURN(value->name, Tied(wish, *value->tensor, tensor));
    if (!value->name.empty()) return value->name;
    of_source_[trained_.SourceOf(*value->tensor)].push_back(parameters_.size());
  }
  HT_ASSIGN_OR_RETURN(value->name, AddParameter(wish, std::move(tensor),
                                                value->trained, known));
  return value->name;
}

absl::StatusOr<std::string> OnnxGraph::Tied(const std::string& wish,
                                            const onnx::TensorProto& proto,
                                            const OnnxTensor& tensor) {
  const std::string source = trained_.SourceOf(proto);
  if (source.empty()) return source;
  OnnxValue* const whole = source == proto.name() ? nullptr : Find(source);
  if (whole != nullptr && whole->trained) {
    HT_RETURN_IF_ERROR(Materialize(source, whole).status());
  }
  for (const size_t index : of_source_[source]) {
    const Parameter& parameter = parameters_[index];
    const OnnxTensor& there = parameter.tensor;
    if (there.dtype != tensor.dtype) continue;
    if (there.dims == tensor.dims && there.bytes == tensor.bytes) {
      return parameter.proto.name();
    }
    if (!IsTurned(there, tensor)) continue;
    proto::OpNode node;
    node.set_type("transpose");
    node.add_in()->set_slot("X");
    node.mutable_in(0)->add_var(parameter.proto.name());
    const std::string turned = Unused(wish);
    node.add_out()->set_slot("Out");
    node.mutable_out(0)->add_var(turned);
    HT_RETURN_IF_ERROR(
        AddOp(std::move(node), {{"axis", std::vector<int64_t>{1, 0}}}));
    return turned;
  }
  return std::string();
}

absl::StatusOr<std::string> OnnxGraph::AddParameter(const std::string& wish,
                                                    OnnxTensor tensor,
                                                    bool trainable,
                                                    const OnnxConstant* known) {
  Parameter parameter;
  parameter.proto.set_name(Unused(wish));
  parameter.proto.mutable_dims()->Add(tensor.dims.begin(), tensor.dims.end());
  const DType dtype = IsFloat(tensor.dtype) ? DType::kF32 : tensor.dtype;
  if (dtype != DType::kF32) parameter.proto.set_dtype(ProtoOf(dtype));
  if (!trainable) parameter.proto.set_trainable(false);
  *parameter.proto.mutable_init() = InitOf(known, parameter.proto);
  Cell cell;
  cell.name = parameter.proto.name();
  cell.trainable = trainable;
  HT_RETURN_IF_ERROR(SetCellType(parameter.proto, /*statistic=*/false, &cell));
  HT_RETURN_IF_ERROR(SetInitializer(parameter.proto, &cell));
  program_->AddCell(std::move(cell));
  parameter.tensor = std::move(tensor);
  const std::string name = parameter.proto.name();
  parameter_by_name_[name] = parameters_.size();
  parameters_.push_back(std::move(parameter));
  return name;
}

std::string OnnxGraph::Unused(const std::string& wish) {
  std::string base = wish;
  if (!BadName(base).empty() || base[0] == '@') base = "value";
  std::string name = base;
  const auto taken = [this](const std::string& one) {
    return block_->FindValue(one).valid() || program_->FindCell(one).valid();
  };
  while (taken(name)) name = absl::StrCat(base, ".", ++counts_[base]);
  return name;
}

absl::Status OnnxGraph::AddFeed(const std::string& wish, proto::Feed feed,
                                std::string* name) {
  TensorType type;
  type.dtype = FromProto(feed.dtype());
  for (const int64_t dim : feed.dims()) {
    type.dims.push_back(dim == -1 ? Batch() : Dim(dim));
  }
  const std::string wrong = BadDims(type);
  if (!wrong.empty()) return ModelError("dims: ", wrong);
  *name = Unused(wish);
  feed.set_name(*name);
  block_->AddFeed(*name, type);
  *model_.add_feed() = std::move(feed);
  return absl::OkStatus();
}

Dim OnnxGraph::Batch() { return Dim::Symbol(program_->Symbol("B")); }

absl::Status OnnxGraph::AddOp(
    proto::OpNode node,
    const std::vector<std::pair<std::string, AttrValue>>& attrs) {
  OpBuilder builder(block_, node.type());
  for (const proto::SlotVars& in : node.in()) {
    std::vector<ValueId> values;
    for (const std::string& var : in.var()) {
      ValueId value = block_->FindValue(var);
      if (!value.valid()) value = block_->CellValue(program_->FindCell(var));
      values.push_back(value);
    }
    builder.In(in.slot(), values);
  }
  for (const proto::SlotVars& out : node.out()) {
    for (const std::string& var : out.var()) builder.Out(out.slot(), var);
  }
  const OpSchema* const schema = Ops().Find(node.type());
  for (const auto& [name, value] : attrs) {
    builder.Attr(name, value);
    if (schema == nullptr) continue;
    const std::string wrong = SetAttrOf(*schema, name, value, &node);
    if (!wrong.empty()) return ModelError("attribute ", name, wrong);
  }
  if (schema != nullptr && schema->stream_attr() >= 0) {
    builder.Attr("stream", int64_t{1});
  }
  HT_RETURN_IF_ERROR(builder.Build().status());
  *model_.add_op() = std::move(node);
  return absl::OkStatus();
}

const proto::Parameter* OnnxGraph::FindParameter(
    const std::string& name) const {
  const auto found = parameter_by_name_.find(name);
  return found == parameter_by_name_.end() ? nullptr
                                           : &parameters_[found->second].proto;
}

void OnnxGraph::SetStatistic(const std::string& name, double init) {
  const auto found = parameter_by_name_.find(name);
  if (found == parameter_by_name_.end()) return;
  Parameter& parameter = parameters_[found->second];
  parameter.statistic = true;
  parameter.proto.clear_trainable();
  parameter.proto.mutable_init()->set_constant(init);
}

void OnnxGraph::Freeze(const std::string& name) {
  const auto found = parameter_by_name_.find(name);
  if (found == parameter_by_name_.end()) return;
  Parameter& parameter = parameters_[found->second];
  if (!parameter.statistic) parameter.proto.set_trainable(false);
}

std::optional<double> OnnxGraph::UniformOf(const std::string& name) const {
  const auto found = parameter_by_name_.find(name);
  if (found == parameter_by_name_.end()) return std::nullopt;
  const auto known = ConstantOf(parameters_[found->second].tensor);
  return known.has_value() ? known->Uniform() : std::nullopt;
}

bool OnnxGraph::Trains(const std::string& name) const {
  const auto found = parameter_by_name_.find(name);
  return found != parameter_by_name_.end() &&
         !parameters_[found->second].statistic &&
         parameters_[found->second].proto.trainable();
}

absl::StatusOr<std::string> OnnxGraph::BatchOfZeros() {
  if (!batch_of_zeros_.empty()) return batch_of_zeros_;
  for (const proto::Feed& feed : model_.feed()) {
    if (feed.dims_size() == 0 || feed.dims(0) != -1) continue;
    const std::string from = feed.name();
    std::vector<int64_t> axes, starts, ends;
    for (int i = 1; i < feed.dims_size(); ++i) {
      axes.push_back(i);
      starts.push_back(0);
      ends.push_back(1);
    }
    int made = 0;
    std::string last = from;
    const auto add = [&](const char* type, const char* in, const char* suffix,
                         std::vector<std::pair<std::string, AttrValue>> attrs) {
      proto::OpNode node;
      node.set_type(type);
      proto::SlotVars& slot = *node.add_in();
      slot.set_slot(in);
      slot.add_var(last);
      last = Unused(absl::StrCat("batch.", suffix));
      node.add_out()->set_slot("Out");
      node.mutable_out(0)->add_var(last);
      ++made;
      return AddOp(std::move(node), attrs);
    };
    if (!axes.empty()) {
      HT_RETURN_IF_ERROR(
          add("slice", "Input", "first",
              {{"axes", axes}, {"starts", starts}, {"ends", ends}}));
      HT_RETURN_IF_ERROR(
          add("reshape", "X", "list", {{"shape", std::vector<int64_t>{-1}}}));
    }
    HT_RETURN_IF_ERROR(add("cast", "X", "float", {{"to", DType::kF32}}));
    HT_RETURN_IF_ERROR(add("fill_zeros_like", "X", "none", {}));
    HT_RETURN_IF_ERROR(add("cast", "X", "zeros", {{"to", DType::kI64}}));
    batch_of_zeros_ = last;
    return last;
  }
  return ModelError("no feed has the batch as its first dim");
}

std::vector<OnnxWeight> OnnxGraph::Finish() {
  std::set<std::string> read(model_.output().begin(), model_.output().end());
  for (const proto::OpNode& op : model_.op()) {
    for (const proto::SlotVars& in : op.in()) {
      read.insert(in.var().begin(), in.var().end());
    }
  }
  std::vector<OnnxWeight> weights;
  for (Parameter& parameter : parameters_) {
    if (read.count(parameter.proto.name()) == 0) continue;
    weights.push_back({parameter.proto.name(), std::move(parameter.tensor)});
    *(parameter.statistic ? model_.add_stat() : model_.add_param()) =
        std::move(parameter.proto);
  }
  return weights;
}

}  // namespace halftone
