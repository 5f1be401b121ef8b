#include "graph/export/onnx_export.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/export/onnx_rules.h"
#include "graph/import/onnx_file.h"
#include "graph/import/onnx_wire.h"
#include "graph/import/refusals.h"

namespace halftone {
namespace onnx_export {
namespace {

using proto::onnx::TensorProto;

constexpr int64_t kAlignment = 64;

class Exporter {
 public:
  Exporter(const Program& program, const Entry& entry,
           const std::map<std::string, absl::string_view>& cells,
           const OnnxExportOptions& options)
      : program_(program),
        block_(entry.block()),
        cells_(cells),
        options_(options),
        builder_(program, entry) {}

  absl::StatusOr<OnnxExport> Run() {
    AddInputs();
    AddConstants();
    for (const OpId id : block_.ops()) AddOp(block_.op(id));
    HT_RETURN_IF_ERROR(
        refusals_.ToStatus(options_.file, "exported as an ONNX model"));
    builder_.AddOutputs();
    builder_.TransposeBeforeCasts();
    for (const auto& input : builder_.graph().input()) {
      out_.inputs.push_back(input.name());
    }
    for (const auto& output : builder_.graph().output()) {
      out_.outputs.push_back(output.name());
    }
    out_.nodes = builder_.graph().node_size();
    builder_.graph().set_name(program_.name.empty() ? "model" : program_.name);
    HT_RETURN_IF_ERROR(FindWeights());
    out_.initializers = static_cast<int64_t>(weights_.size());
    const bool external = out_.weight_bytes >= options_.most_bytes;
    if (external) MoveOut();
    Write(external);
    return std::move(out_);
  }

 private:
  void AddInputs() {
    for (const ValueId feed : block_.Feeds()) {
      const std::string name = builder_.NameOf(feed);
      if (absl::StartsWith(name, "@")) {
        refusals_.Add(name, "the run alone knows it", "the entry's feeds");
      }
      builder_.Describe(name, block_.type(feed), builder_.graph().add_input());
    }
  }

  // Those of the program.
  void AddConstants() {
    for (int i = 0; i < block_.value_limit(); ++i) {
      const Value& value = block_.value(ValueId(i));
      if (value.erased || value.definition != Definition::kConstant) continue;
      const Constant& constant = program_.constant(ConstantId(value.index));
      IntList dims;
      for (const Dim& dim : constant.type.dims) {
        dims.push_back(dim.coefficient());
      }
      proto::onnx::NodeProto* node = builder_.AddNode("Identity");
      node->add_input(
          builder_.Reals(constant.values, dims, constant.type.dtype));
      node->add_output(builder_.NameOf(value.id));
    }
  }

  void AddOp(const Op& op) {
    const std::string place =
        absl::StrCat(std::string(block_.name(op)),
                     op.line > 0 ? absl::StrCat(" (line ", op.line, ")") : "");
    const Rule* const rule = FindRule(op.schema->name());
    if (rule == nullptr) {
      return refusals_.Add(op.schema->name(), "ONNX has no op like it", place);
    }
    SourceOp source(op, &builder_);
    rule->convert(source, *rule);
    for (const std::string& refusal : source.refusals()) {
      refusals_.Add(op.schema->name(), refusal, place);
    }
  }

  // A cell's bytes; an error is a bug of who calls.
  absl::StatusOr<absl::string_view> BytesOf(const Cell& cell) const {
    const auto found = cells_.find(cell.name);
    const int64_t wanted =
        cell.type.Elements().coefficient() * SizeOf(cell.type.dtype);
    if (found != cells_.end() &&
        static_cast<int64_t>(found->second.size()) == wanted) {
      return found->second;
    }
    return CompilerBug(options_.file, ": no value of ", cell.name);
  }

  // The cells that are read, as initialisers without their bytes.
  absl::Status FindWeights() {
    for (int i = 0; i < program_.num_cells(); ++i) {
      const Cell& cell = program_.cell(CellId(i));
      if (!block_.FindCellValue(cell.id).valid()) continue;
      HT_ASSIGN_OR_RETURN(const absl::string_view own, BytesOf(cell));
      TensorProto tensor;
      tensor.set_name(cell.name);
      tensor.set_data_type(ToOnnx(cell.type.dtype));
      for (const Dim& dim : cell.type.dims) {
        tensor.add_dims(dim.coefficient());
      }
      out_.weight_bytes += static_cast<int64_t>(own.size());
      weights_.push_back({std::move(tensor), own});
    }
    return absl::OkStatus();
  }

  void MoveOut();
  void Write(bool external);

  struct Weight {
    TensorProto tensor;
    absl::string_view bytes;
  };

  const Program& program_;
  const Block& block_;
  const std::map<std::string, absl::string_view>& cells_;
  const OnnxExportOptions& options_;
  Builder builder_;
  Refusals refusals_;
  std::vector<Weight> weights_;
  OnnxExport out_;
};

// The weights go into a file of their own, each at a place that may be mapped
// into memory.
void Exporter::MoveOut() {
  static const std::string& zeros = *new std::string(kAlignment, '\0');
  int64_t offset = 0;
  for (Weight& weight : weights_) {
    const int64_t bytes = static_cast<int64_t>(weight.bytes.size());
    const auto add = [&](const char* key, const std::string& value) {
      auto* entry = weight.tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    weight.tensor.set_data_location(TensorProto::EXTERNAL);
    add("location", options_.data_file);
    add("offset", absl::StrCat(offset));
    add("length", absl::StrCat(bytes));
    const int64_t gap = (kAlignment - bytes % kAlignment) % kAlignment;
    out_.data.push_back(weight.bytes);
    out_.data.push_back(absl::string_view(zeros).substr(0, gap));
    offset += bytes + gap;
  }
}

// All but the initialisers, then each of those, its bytes behind it.
void Exporter::Write(bool external) {
  proto::onnx::ModelProto model;
  model.set_ir_version(kOnnxIrVersion);
  model.set_producer_name("halftone");
  model.add_opset_import()->set_version(kOnnxOpset);
  std::string& first = out_.made.emplace_back(model.SerializeAsString());
  const std::string graph = builder_.graph().SerializeAsString();
  uint64_t size = graph.size();
  for (const Weight& weight : weights_) {
    std::string tensor = weight.tensor.SerializeAsString();
    const absl::string_view bytes =
        external ? absl::string_view() : weight.bytes;
    if (!external) {
      onnx_wire::AppendHead(onnx_wire::kRawData, bytes.size(), &tensor);
    }
    std::string& head = out_.made.emplace_back();
    onnx_wire::AppendHead(onnx_wire::kInitializer, tensor.size() + bytes.size(),
                          &head);
    head += tensor;
    size += head.size() + bytes.size();
    out_.model.push_back(head);
    out_.model.push_back(bytes);
  }
  onnx_wire::AppendHead(onnx_wire::kGraph, size, &first);
  first += graph;
  out_.model.insert(out_.model.begin(), first);
}

}  // namespace
}  // namespace onnx_export

absl::StatusOr<OnnxExport> ExportOnnx(
    const Program& program, const Entry& entry,
    const std::map<std::string, absl::string_view>& cells,
    const OnnxExportOptions& options) {
  return onnx_export::Exporter(program, entry, cells, options).Run();
}

}  // namespace halftone
