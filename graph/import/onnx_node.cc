#include "graph/import/onnx_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/import/paddle_program.h"

namespace halftone {

using onnx::AttributeProto;
using IntList = std::vector<int64_t>;

// ---- OnnxOp.

OnnxOp::OnnxOp(OnnxNode* node, absl::string_view type) : node_(node) {
  op_.set_type(std::string(type));
}

OnnxOp& OnnxOp::In(absl::string_view slot, const std::string& value) {
  for (proto::SlotVars& in : *op_.mutable_in()) {
    if (in.slot() != slot) continue;
    in.add_var(value);
    return *this;
  }
  proto::SlotVars& in = *op_.add_in();
  in.set_slot(std::string(slot));
  in.add_var(value);
  return *this;
}

OnnxOp& OnnxOp::Attr(absl::string_view name, AttrValue value) {
  attrs_.emplace_back(std::string(name), std::move(value));
  return *this;
}

std::string OnnxOp::Name(absl::string_view slot,
                         std::vector<std::string> wishes) {
  if (node_->failed()) return "";
  const int outs = op_.out_size();
  if (outs == 0 || op_.out(outs - 1).slot() != slot) {
    op_.add_out()->set_slot(std::string(slot));
  }
  proto::SlotVars& out = *op_.mutable_out(op_.out_size() - 1);
  const int first = out.var_size();
  for (const std::string& wish : wishes) {
    std::string name = node_->graph_.Unused(wish);
    for (int i = 1; !named_.insert(name).second; ++i) {
      name = node_->graph_.Unused(absl::StrCat(wish, ".", i));
    }
    out.add_var(name);
  }
  return out.var(first);
}

void OnnxOp::Add() {
  if (node_->failed()) return;
  const absl::Status status = node_->graph_.AddOp(op_, attrs_);
  if (status.ok()) return;
  node_->Refuse(absl::StrCat("as ", op_.type()),
                absl::StrCat(": ", status.message()));
}

void OnnxOp::Out(absl::string_view slot, int output) {
  const std::string name = Name(slot, {node_->proto_.output(output)});
  Add();
  node_->Same(output, name);
}

void OnnxOp::OutList(absl::string_view slot) {
  const auto& outputs = node_->proto_.output();
  Name(slot, {outputs.begin(), outputs.end()});
  Add();
  for (int i = 0; i < node_->outputs() && !node_->failed(); ++i) {
    node_->Same(i, op_.out(0).var(i));
  }
}

std::string OnnxOp::Made(absl::string_view slot) {
  const std::string name =
      Name(slot, {absl::StrCat(node_->proto_.output(0), ".", op_.type())});
  Add();
  return node_->failed() ? "" : name;
}

std::vector<std::string> OnnxOp::MadeList(absl::string_view slot,
                                          int64_t count) {
  const std::string wish =
      absl::StrCat(node_->proto_.output(0), ".", op_.type());
  Name(slot, std::vector<std::string>(count, wish));
  Add();
  if (node_->failed()) return std::vector<std::string>(count);
  const auto& made = op_.out(0).var();
  return {made.begin(), made.end()};
}

std::vector<std::string> OnnxOp::MadeAll(
    std::initializer_list<absl::string_view> slots) {
  std::vector<std::string> names;
  for (const absl::string_view slot : slots) {
    names.push_back(Name(slot, {absl::StrCat(node_->proto_.output(0), ".",
                                             op_.type(), ".", slot)}));
  }
  Add();
  if (node_->failed()) names.assign(slots.size(), "");
  return names;
}

// ---- Inputs.

OnnxNode::OnnxNode(const onnx::NodeProto& proto, int64_t opset,
                   OnnxGraph* graph,
                   const absl::flat_hash_set<std::string>* read)
    : proto_(proto), opset_(opset), graph_(*graph), read_(*read) {}

bool OnnxNode::Has(int input) {
  asked_inputs_.insert(input);
  return input < inputs() && !proto_.input(input).empty();
}

std::string OnnxNode::In(int input) {
  if (failed()) return "";
  if (!Has(input)) {
    Refuse(absl::StrCat("input ", input), " is missing");
    return "";
  }
  const std::string& name = proto_.input(input);
  absl::StatusOr<std::string> value =
      graph_.Materialize(name, graph_.Find(name));
  if (value.ok()) return *std::move(value);
  Refuse(absl::StrCat("input ", input),
         absl::StrCat(" (", name, "): ", value.status().message()));
  return "";
}

const std::vector<std::string>* OnnxNode::Sequence(int input) {
  const OnnxValue* const value =
      Has(input) ? graph_.Find(proto_.input(input)) : nullptr;
  if (value != nullptr && !value->sequence.empty()) return &value->sequence;
  Refuse(absl::StrCat("input ", input), " is no sequence of tensors");
  return nullptr;
}

TensorType OnnxNode::Type(int input) {
  if (!Has(input)) {
    Refuse(absl::StrCat("input ", input), " is missing");
    return TensorType();
  }
  const absl::StatusOr<TensorType> type =
      graph_.TypeOf(graph_.Find(proto_.input(input)));
  if (type.ok()) return *type;
  Refuse(absl::StrCat("input ", input),
         absl::StrCat(": ", type.status().message()));
  return TensorType();
}

bool OnnxNode::IsFloat(int input) {
  return halftone::IsFloat(Type(input).dtype);
}

TensorType OnnxNode::TypeOf(const std::string& value) {
  return value.empty() ? TensorType() : graph_.TypeOf(value);
}

const OnnxConstant* OnnxNode::Known(int input) {
  return Has(input) ? graph_.Known(graph_.Find(proto_.input(input))) : nullptr;
}

bool OnnxNode::Folds(int input) {
  return Has(input) && graph_.Folds(graph_.Find(proto_.input(input)));
}

bool OnnxNode::IsInitializer(int input) {
  return Has(input) && graph_.Find(proto_.input(input))->tensor != nullptr;
}

IntList OnnxNode::KnownInts(int input) {
  const OnnxConstant* const known = Known(input);
  const auto ints = known != nullptr ? known->Integers() : std::nullopt;
  if (ints.has_value()) return *ints;
  Refuse(absl::StrCat("input ", input), ": expected constant integers");
  return {};
}

double OnnxNode::KnownReal(int input, double otherwise) {
  if (!Has(input)) return otherwise;
  const OnnxConstant* const known = Known(input);
  if (known != nullptr && known->elements() == 1) {
    if (known->is_float()) return Shortest(static_cast<float>(known->reals[0]));
    if (known->ints[0].is_constant()) {
      return static_cast<double>(known->ints[0].coefficient());
    }
  }
  Refuse(absl::StrCat("input ", input), ": expected one constant number");
  return otherwise;
}

int64_t OnnxNode::KnownInt(int input, int64_t otherwise) {
  constexpr double kMost = 1 << 30;
  const double real = KnownReal(input, static_cast<double>(otherwise));
  if (real >= -kMost && real <= kMost) return static_cast<int64_t>(real);
  Refuse(absl::StrCat("input ", input), ": beyond bounds");
  return otherwise;
}

// ---- Outputs.

bool OnnxNode::IsRead(int output) const {
  return output < outputs() && !proto_.output(output).empty() &&
         read_.contains(proto_.output(output));
}

void OnnxNode::ExpectUnread(int output) {
  if (!IsRead(output)) return;
  Refuse(absl::StrCat("output ", output), " is read, which ours does not have");
}

void OnnxNode::Same(int output, const std::string& value) {
  if (failed()) return;
  OnnxValue same;
  same.name = value;
  if (output >= outputs() || proto_.output(output).empty() ||
      graph_.Add(proto_.output(output), std::move(same))) {
    return;
  }
  Refuse("two definitions", absl::StrCat(" of ", proto_.output(output)));
}

void OnnxNode::SequenceOf(std::vector<std::string> values) {
  if (failed()) return;
  OnnxValue value;
  value.sequence = std::move(values);
  if (!graph_.Add(proto_.output(0), std::move(value))) {
    Refuse("two definitions", absl::StrCat(" of ", proto_.output(0)));
  }
}

void OnnxNode::Constant(int output, OnnxConstant constant) {
  OnnxValue value;
  value.constant = std::move(constant);
  if (!graph_.Add(proto_.output(output), std::move(value))) {
    Refuse("two definitions", absl::StrCat(" of ", proto_.output(output)));
  }
}

// ---- Attributes.

const AttributeProto* OnnxNode::Ask(absl::string_view name,
                                    AttributeProto::AttributeType type) {
  asked_.insert(std::string(name));
  const AttributeProto* const attr = FindAttr(proto_, name);
  if (attr == nullptr) return nullptr;
  // Old files do not say the type.
  const bool fits =
      attr->type() == type || attr->type() == AttributeProto::UNDEFINED;
  if (fits && attr->ref_attr_name().empty()) return attr;
  Refuse(absl::StrCat("attribute ", name), " is of another type");
  return nullptr;
}

bool OnnxNode::HasAttr(absl::string_view name) {
  asked_.insert(std::string(name));
  return FindAttr(proto_, name) != nullptr;
}

int64_t OnnxNode::Int(absl::string_view name, int64_t otherwise) {
  const AttributeProto* const attr = Ask(name, AttributeProto::INT);
  return attr == nullptr ? otherwise : attr->i();
}

double OnnxNode::Float(absl::string_view name, double otherwise) {
  const AttributeProto* const attr = Ask(name, AttributeProto::FLOAT);
  return attr == nullptr ? otherwise : Shortest(attr->f());
}

std::string OnnxNode::String(absl::string_view name,
                             absl::string_view otherwise) {
  const AttributeProto* const attr = Ask(name, AttributeProto::STRING);
  return attr == nullptr ? std::string(otherwise) : attr->s();
}

IntList OnnxNode::Ints(absl::string_view name, IntList otherwise) {
  const AttributeProto* const attr = Ask(name, AttributeProto::INTS);
  if (attr == nullptr) return otherwise;
  return IntList(attr->ints().begin(), attr->ints().end());
}

std::vector<double> OnnxNode::Floats(absl::string_view name) {
  const AttributeProto* const attr = Ask(name, AttributeProto::FLOATS);
  std::vector<double> floats;
  if (attr == nullptr) return floats;
  for (const float number : attr->floats()) floats.push_back(Shortest(number));
  return floats;
}

std::vector<std::string> OnnxNode::Strings(absl::string_view name) {
  const AttributeProto* const attr = Ask(name, AttributeProto::STRINGS);
  if (attr == nullptr) return {};
  return std::vector<std::string>(attr->strings().begin(),
                                  attr->strings().end());
}

const onnx::TensorProto* OnnxNode::Tensor(absl::string_view name) {
  const AttributeProto* const attr = Ask(name, AttributeProto::TENSOR);
  return attr == nullptr ? nullptr : &attr->t();
}

IntList OnnxNode::Axes(absl::string_view name, int input, IntList otherwise) {
  if (HasAttr(name)) return Ints(name, {});
  return Has(input) ? KnownInts(input) : otherwise;
}

int64_t OnnxNode::Axis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  Refuse("axis",
         absl::StrCat(": expected one of ", rank, " dims, found ", axis));
  return 0;
}

void OnnxNode::CheckTaken() {
  for (int i = 0; i < inputs(); ++i) {
    if (proto_.input(i).empty() || asked_inputs_.count(i) > 0) continue;
    Refuse(absl::StrCat("input ", i),
           absl::StrCat(" (", proto_.input(i), ") is not taken"));
  }
  for (const AttributeProto& attr : proto_.attribute()) {
    if (asked_.contains(attr.name())) continue;
    Refuse(absl::StrCat("attribute ", attr.name()), " is not taken");
  }
}

// ---- Ops.

IntList OnnxNode::ShapeAttr(const std::string& value, const Dims& dims) {
  const Dims from = TypeOf(value).dims;
  IntList shape;
  int open = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is_constant() && dims[i].coefficient() != 0) {
      shape.push_back(dims[i].coefficient());
    } else if (i < from.size() && from[i] == dims[i]) {
      shape.push_back(0);
    } else {
      shape.push_back(-1);
      ++open;
    }
  }
  if (open > 1) Refuse("two dims of the batch", " are not taken");
  return shape;
}

std::string OnnxNode::Reshaped(const std::string& value, const Dims& dims) {
  if (TypeOf(value).dims == dims) return value;
  return Op("reshape")
      .In("X", value)
      .Attr("shape", ShapeAttr(value, dims))
      .Made();
}

void OnnxNode::ReshapeTo(const std::string& value, const Dims& dims) {
  Op("reshape").In("X", value).Attr("shape", ShapeAttr(value, dims)).Out();
}

std::string OnnxNode::Cast(const std::string& value, DType to) {
  if (value.empty() || TypeOf(value).dtype == to) return value;
  return Op("cast").In("X", value).Attr("to", to).Made();
}

std::string OnnxNode::ToF32(const std::string& whole) {
  const DType dtype = TypeOf(whole).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64) through_f32_ = true;
  return Cast(whole, DType::kF32);
}

std::string OnnxNode::Parameter(OnnxConstant constant) {
  OnnxValue value;
  value.constant = std::move(constant);
  const auto name =
      graph_.Materialize(absl::StrCat(proto_.output(0), ".constant"), &value);
  if (name.ok()) return *name;
  Refuse("a constant", absl::StrCat(": ", name.status().message()));
  return "";
}

std::string OnnxNode::Number(double value, DType dtype) {
  OnnxConstant number;
  number.dtype = dtype;
  if (halftone::IsFloat(dtype)) {
    number.reals.push_back(value);
  } else {
    number.ints.emplace_back(static_cast<int64_t>(value));
  }
  return Parameter(std::move(number));
}

void OnnxNode::Refuse(std::string kind, std::string found) {
  refusals_.push_back({std::move(kind), std::move(found)});
}

}  // namespace halftone
