#include "graph/export/onnx_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/import/onnx_file.h"

namespace halftone {
namespace onnx_export {
namespace {

using proto::onnx::AttributeProto;

struct SetAttr {
  AttributeProto& attr;
  void operator()(bool value) const { (*this)(int64_t{value}); }
  void operator()(int64_t value) const {
    attr.set_type(AttributeProto::INT);
    attr.set_i(value);
  }
  void operator()(double value) const {
    attr.set_type(AttributeProto::FLOAT);
    attr.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    attr.set_type(AttributeProto::STRING);
    attr.set_s(value);
  }
  void operator()(const IntList& values) const {
    attr.set_type(AttributeProto::INTS);
    attr.mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<double>& values) const {
    attr.set_type(AttributeProto::FLOATS);
    for (const double value : values) {
      attr.add_floats(static_cast<float>(value));
    }
  }
  void operator()(const std::vector<std::string>& values) const {
    attr.set_type(AttributeProto::STRINGS);
    for (const std::string& value : values) attr.add_strings(value);
  }
  void operator()(DType value) const { (*this)(int64_t{ToOnnx(value)}); }
};

}  // namespace

// ---- NodeMaker.

NodeMaker::NodeMaker(SourceOp* op, absl::string_view type)
    : op_(op), type_(type) {}

NodeMaker& NodeMaker::In(const std::string& value) {
  inputs_.push_back(value);
  return *this;
}

NodeMaker& NodeMaker::Attr(absl::string_view name, const AttrValue& value) {
  AttributeProto* attr = attrs_.add_attribute();
  attr->set_name(std::string(name));
  std::visit(SetAttr{*attr}, value);
  return *this;
}

void NodeMaker::Out(absl::string_view slot, int i) {
  const Op& op = op_->op_;
  Builder& builder = op_->builder_;
  const int index = op.schema->FindOutput(slot);
  HT_CHECK(index >= 0, "an output slot that the op has");
  proto::onnx::NodeProto* node = builder.AddNode(type_);
  for (const std::string& input : inputs_) node->add_input(input);
  absl::Span<const ValueId> results = op.outputs.slot(index);
  if (i >= 0) results = results.subspan(i, 1);
  for (const ValueId value : results) {
    node->add_output(builder.NameOf(value));
  }
  node->set_name(node->output(0));
  node->mutable_attribute()->Swap(attrs_.mutable_attribute());
}

std::string NodeMaker::Made() { return MadeAll(1)[0]; }

std::vector<std::string> NodeMaker::MadeAll(int results) {
  Builder& builder = op_->builder_;
  const std::string wish =
      absl::StrCat(builder.NameOf(op_->op_.outputs.all()[0]), ".", type_);
  proto::onnx::NodeProto* node = builder.AddNode(type_);
  for (const std::string& input : inputs_) node->add_input(input);
  std::vector<std::string> made;
  for (int i = 0; i < results; ++i) {
    made.push_back(builder.Unused(wish));
    node->add_output(made.back());
  }
  node->set_name(made[0]);
  node->mutable_attribute()->Swap(attrs_.mutable_attribute());
  return made;
}

// ---- SourceOp.

int SourceOp::Count(absl::string_view slot) const {
  const int index = op_.schema->FindInput(slot);
  HT_CHECK(index >= 0, "an input slot that the op has");
  return static_cast<int>(op_.inputs.slot(index).size());
}

std::string SourceOp::In(absl::string_view slot, int i) {
  return builder_.NameOf(op_.inputs.slot(op_.schema->FindInput(slot))[i]);
}

const TensorType& SourceOp::Type(absl::string_view slot, int i) const {
  return builder_.block().type(op_.inputs.slot(op_.schema->FindInput(slot))[i]);
}

const TensorType& SourceOp::OutType(absl::string_view slot, int i) const {
  return builder_.block().type(
      op_.outputs.slot(op_.schema->FindOutput(slot))[i]);
}

int SourceOp::Outputs(absl::string_view slot) const {
  return static_cast<int>(
      op_.outputs.slot(op_.schema->FindOutput(slot)).size());
}

void SourceOp::ExpectUnread(absl::string_view slot) {
  const int kept = op_.schema->FindOutput(slot);
  for (int i = 0; i < static_cast<int>(op_.outputs.all().size()); ++i) {
    const int of = op_.outputs.SlotOf(i);
    if (of == kept) continue;
    const Value& value = builder_.block().value(op_.outputs.all()[i]);
    if (value.uses.empty()) continue;
    Refuse(absl::StrCat("its output ", op_.schema->outputs()[of].name,
                        " is read, which ONNX's op does not have"));
  }
}

bool SourceOp::HasAttr(absl::string_view name) const {
  return op_.schema->FindAttr(name) >= 0;
}

void SourceOp::Same(const std::string& value, absl::string_view slot) {
  Node("Identity").In(value).Out(slot);
}

std::string SourceOp::Cast(const std::string& value, DType from, DType to) {
  if (from == to) return value;
  return Node("Cast").In(value).Attr("to", to).Made();
}

std::string SourceOp::Reshaped(const std::string& value, const Dims& from,
                               const Dims& to) {
  if (from == to) return value;
  IntList shape;
  int open = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_constant()) {
      shape.push_back(to[i].coefficient());
    } else if (i < from.size() && from[i] == to[i]) {
      shape.push_back(0);  // the same as there
    } else {
      shape.push_back(-1);
      ++open;
    }
  }
  if (open > 1) Refuse("two of its dims are the batch's in another place");
  return Node("Reshape").In(value).In(builder_.Ints(shape)).Made();
}

std::string SourceOp::Unsqueezed(const std::string& value,
                                 const IntList& axes) {
  if (axes.empty()) return value;
  return Make("Unsqueeze", value, builder_.Ints(axes));
}

std::string SourceOp::Transposed(const std::string& value,
                                 const IntList& order) {
  return Node("Transpose").In(value).Attr("perm", order).Made();
}

std::string SourceOp::Make(absl::string_view node, const std::string& x,
                           const std::string& y) {
  NodeMaker maker = Node(node);
  maker.In(x);
  if (!y.empty()) maker.In(y);
  return maker.Made();
}

}  // namespace onnx_export
}  // namespace halftone
