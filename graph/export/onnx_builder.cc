#include "graph/export/onnx_builder.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "graph/import/onnx_file.h"

namespace halftone {
namespace onnx_export {
namespace {

template <typename T>
void Append(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

bool IsCastDown(const proto::onnx::NodeProto& node) {
  if (node.op_type() != "Cast") return false;
  const int64_t to = node.attribute(0).i();
  return to == ToOnnx(DType::kF16) || to == ToOnnx(DType::kBF16);
}

}  // namespace

void AppendElement(double value, DType dtype, std::string* bytes) {
  switch (dtype) {
    case DType::kF32:
      return Append(static_cast<float>(value), bytes);
    case DType::kF64:
      return Append(value, bytes);
    case DType::kF16:
      return Append(half(static_cast<float>(value)), bytes);
    case DType::kBF16:
      return Append(bfloat16(static_cast<float>(value)), bytes);
    case DType::kI32:
      return Append(static_cast<int32_t>(value), bytes);
    case DType::kI64:
      return Append(static_cast<int64_t>(value), bytes);
    case DType::kU8:
      return Append(static_cast<uint8_t>(value), bytes);
    case DType::kBool:
      return Append(static_cast<uint8_t>(value != 0), bytes);
    case DType::kInvalid:
      break;
  }
  HT_CHECK(false, "a value without a dtype");
}

Builder::Builder(const Program& program, const Entry& entry)
    : program_(program), entry_(entry) {
  const auto keep = [this](ValueId value, const std::string& name) {
    if (names_.insert(name).second) of_value_.emplace(value, name);
  };
  for (const ValueId feed : block().Feeds()) {
    keep(feed, std::string(block().name(feed)));
  }
  for (int i = 0; i < program.num_cells(); ++i) {
    const ValueId value = block().FindCellValue(CellId(i));
    if (value.valid()) keep(value, program.cell(CellId(i)).name);
  }
  // Of two results that are one value the second is a copy (AddOutputs).
  for (const Result& result : entry.results()) {
    const bool made = block().value(result.value).op().valid();
    if (made && of_value_.count(result.value) == 0) {
      keep(result.value, result.name);
    } else {
      names_.insert(result.name);
    }
  }
}

std::string Builder::NameOf(ValueId value) {
  const auto [found, added] = of_value_.emplace(value, "");
  if (added) found->second = Unused(std::string(block().name(value)));
  return found->second;
}

std::string Builder::Unused(const std::string& wish) {
  std::string name = wish;
  while (!names_.insert(name).second) {
    name = absl::StrCat(wish, ".", ++counts_[wish]);
  }
  return name;
}

proto::onnx::NodeProto* Builder::AddNode(absl::string_view type) {
  proto::onnx::NodeProto* node = graph_.add_node();
  node->set_op_type(std::string(type));
  return node;
}

std::string Builder::Constant(DType dtype, const IntList& dims,
                              const std::string& bytes) {
  const std::string key =
      absl::StrCat(Name(dtype), "[", absl::StrJoin(dims, ","), "]", bytes);
  std::string& name = constants_[key];
  if (!name.empty()) return name;
  name = Unused("constant");
  proto::onnx::NodeProto* node = AddNode("Constant");
  node->set_name(name);
  node->add_output(name);
  proto::onnx::AttributeProto* attr = node->add_attribute();
  attr->set_name("value");
  attr->set_type(proto::onnx::AttributeProto::TENSOR);
  proto::onnx::TensorProto* tensor = attr->mutable_t();
  tensor->set_data_type(ToOnnx(dtype));
  tensor->mutable_dims()->Add(dims.begin(), dims.end());
  tensor->set_raw_data(bytes);
  return name;
}

std::string Builder::Ints(const IntList& values) {
  std::string bytes;
  for (const int64_t value : values) Append(value, &bytes);
  return Constant(DType::kI64, {static_cast<int64_t>(values.size())}, bytes);
}

std::string Builder::Number(double value, DType dtype) {
  return Reals({value}, {}, dtype);
}

std::string Builder::Reals(const std::vector<double>& values,
                           const IntList& dims, DType dtype) {
  std::string bytes;
  for (const double value : values) AppendElement(value, dtype, &bytes);
  return Constant(dtype, dims, bytes);
}

void Builder::Describe(const std::string& name, const TensorType& type,
                       proto::onnx::ValueInfoProto* info) const {
  info->set_name(name);
  proto::onnx::TypeProto::Tensor* tensor =
      info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(ToOnnx(type.dtype));
  proto::onnx::TensorShapeProto* shape = tensor->mutable_shape();
  for (const Dim& dim : type.dims) {
    proto::onnx::TensorShapeProto::Dimension* to = shape->add_dim();
    if (dim.is_constant()) {
      to->set_dim_value(dim.coefficient());
    } else {
      to->set_dim_param(ToString(dim, program_.symbols()));
    }
  }
}

void Builder::AddOutputs() {
  for (const Result& result : entry_.results()) {
    const std::string name = NameOf(result.value);
    if (name != result.name) {
      proto::onnx::NodeProto* node = AddNode("Identity");
      node->set_name(result.name);
      node->add_input(name);
      node->add_output(result.name);
    }
    Describe(result.name, block().type(result.value), graph_.add_output());
  }
}

void Builder::TransposeBeforeCasts() {
  using proto::onnx::NodeProto;
  absl::flat_hash_map<std::string, int> readers;
  for (const auto& output : graph_.output()) ++readers[output.name()];
  for (const NodeProto& node : graph_.node()) {
    for (const std::string& input : node.input()) ++readers[input];
  }
  std::vector<NodeProto> nodes;
  absl::flat_hash_map<std::string, NodeProto> casts;  // by what they make
  for (const NodeProto& node : graph_.node()) {
    const bool transposes = node.op_type() == "Transpose";
    const auto cast = transposes ? casts.find(node.input(0)) : casts.end();
    NodeProto last = node;
    if (cast != casts.end()) {
      NodeProto first = node;
      first.set_input(0, cast->second.input(0));
      first.set_output(0, Unused(absl::StrCat(node.output(0), ".wide")));
      first.set_name(first.output(0));
      --readers[node.input(0)];
      last = cast->second;
      last.set_name(node.name());
      last.set_input(0, first.output(0));
      last.set_output(0, node.output(0));
      ++readers[first.output(0)];
      ++readers[first.input(0)];
      nodes.push_back(std::move(first));
    }
    if (IsCastDown(last)) casts[last.output(0)] = last;
    nodes.push_back(std::move(last));
  }
  graph_.clear_node();
  for (NodeProto& node : nodes) {
    // A cast that nothing reads any more.
    if (IsCastDown(node) && readers[node.output(0)] == 0) continue;
    *graph_.add_node() = std::move(node);
  }
}

}  // namespace onnx_export
}  // namespace halftone
