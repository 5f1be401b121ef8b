#include "graph/import/onnx_trained.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "graph/base/dtype.h"

namespace halftone {
namespace {

// What PyTorch's exporter and its optimiser call what they write.
constexpr absl::string_view kKind =
    "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr absl::string_view kFoldedFrom =
    "pkg.onnxscript.optimizer.folded_from";

template <typename Proto>
absl::string_view MetadataOf(const Proto& proto, absl::string_view key) {
  for (const onnx::StringStringEntryProto& entry : proto.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

// Learned numbers are called as attributes of a module are, "logit_scale" or
// "head.0.t"; constants that exporters and optimisers made initialisers of, as
// values of a graph: "onnx::Mul_3", "/Constant_output_0", "const_fold_opt__7",
// "12".
bool IsCalledAsAConstant(absl::string_view name) {
  const bool has_letter =
      std::any_of(name.begin(), name.end(), absl::ascii_isalpha);
  return !has_letter || absl::StrContains(name, ':') ||
         absl::StrContains(name, '/') ||
         absl::StrContains(absl::AsciiStrToLower(name), "const");
}

// Of a list as Python prints it, "['cos', 'layers.0.table']".
std::vector<absl::string_view> NamesOf(absl::string_view list) {
  return absl::StrSplit(list, absl::ByAnyChar("[]', "), absl::SkipEmpty());
}

// Values of the graph are called after functions, "cos" or "cos_3", with no
// dot.
bool IsMadeOfAParameter(absl::string_view sources) {
  bool of_attribute = false;
  for (const absl::string_view name : NamesOf(sources)) {
    of_attribute = of_attribute || absl::StrContains(name, '.');
    const absl::string_view function = name.substr(0, name.find('_'));
    if (function == "cos" || function == "sin") return false;
  }
  return of_attribute;
}

bool HasInfinity(const onnx::TensorProto& tensor, absl::string_view raw) {
  if (tensor.data_type() != onnx::TensorProto::FLOAT) return false;
  const auto infinite = [](float value) { return std::isinf(value); };
  if (std::any_of(tensor.float_data().begin(), tensor.float_data().end(),
                  infinite)) {
    return true;
  }
  if (raw.empty()) raw = tensor.raw_data();
  for (size_t i = 0; i + sizeof(float) <= raw.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, raw.data() + i, sizeof(value));
    if (infinite(value)) return true;
  }
  return false;
}

}  // namespace

OnnxTrained::OnnxTrained(const onnx::GraphProto& graph) {
  const auto read = [this](const auto& proto) {
    const absl::string_view kind = MetadataOf(proto, kKind);
    if (!kind.empty()) kinds_[proto.name()] = kind;
    const absl::string_view sources = MetadataOf(proto, kFoldedFrom);
    if (!sources.empty()) sources_[proto.name()] = sources;
  };
  for (const onnx::TensorProto& tensor : graph.initializer()) read(tensor);
  for (const onnx::ValueInfoProto& info : graph.value_info()) read(info);
}

bool OnnxTrained::Is(const onnx::TensorProto& tensor,
                     absl::string_view raw) const {
  if (!IsFloat(FromOnnx(tensor.data_type()))) return false;
  const auto kind = kinds_.find(tensor.name());
  if (kind != kinds_.end()) return kind->second == "PARAMETER";
  const auto sources = sources_.find(tensor.name());
  if (sources != sources_.end()) return IsMadeOfAParameter(sources->second);
  if (!kinds_.empty()) return false;
  // A slope or a bias of one channel is no number.
  if (tensor.dims_size() == 0) return !IsCalledAsAConstant(tensor.name());
  return !HasInfinity(tensor, raw);
}

std::string OnnxTrained::SourceOf(const onnx::TensorProto& tensor) const {
  const auto sources = sources_.find(tensor.name());
  if (sources == sources_.end()) return tensor.name();
  const std::vector<absl::string_view> names = NamesOf(sources->second);
  return names.size() == 1 ? std::string(names[0]) : "";
}

}  // namespace halftone
