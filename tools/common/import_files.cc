#include "tools/common/import_files.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/output_file.h"
#include "graph/import/onnx_import.h"
#include "graph/import/paddle_import.h"
#include "graph/import/paddle_params.h"
#include "graph/io/model_printer.h"
#include "runtime/checkpoint/safetensors.h"
#include "tools/common/mapped_file.h"

namespace halftone {
namespace tools {
namespace {

// No model with its weights, or file of parameters, is larger.
constexpr int64_t kMostBytes = int64_t{1} << 36;

// models/x of models/x.pdmodel.
std::string Stem(const std::string& path) {
  return std::filesystem::path(path).replace_extension().string();
}

std::string NameOf(const ImportFiles& files) {
  return std::filesystem::path(Stem(files.model)).filename().string();
}

// A tensor that is written from where it lies.
struct Weight {
  std::string name;
  DType dtype{};
  std::vector<int64_t> dims;
  absl::string_view bytes;
};

absl::Status WriteWeights(const std::vector<Weight>& weights,
                          ImportFiles* files) {
  std::vector<runtime::TensorHead> heads;
  int64_t at = 0;
  for (const Weight& one : weights) {
    const int64_t end = at + static_cast<int64_t>(one.bytes.size());
    heads.push_back({one.name, one.dtype, one.dims, at, end});
    at = end;
  }
  const std::string header = runtime::SafetensorsHeader(heads);
  std::vector<absl::string_view> parts = {header};
  for (const Weight& one : weights) parts.push_back(one.bytes);
  files->tensors = static_cast<int64_t>(weights.size());
  files->weight_bytes = at;
  files->weights = Stem(files->out) + ".safetensors";
  if (files->weights == files->out) {
    return UsageError("--out ", files->out, ": so the weights are called; ",
                      "name the model otherwise, as .pbtxt");
  }
  return WriteOutput(files->weights, parts);
}

absl::Status WriteModel(const ImportedModel& imported, ImportFiles* files) {
  const std::string text = PrintModel(*imported.model.model);
  files->bytes = static_cast<int64_t>(text.size());
  return WriteOutput(files->out, text);
}

// ---- Paddle.

absl::StatusOr<paddle::ProgramDesc> ReadPaddle(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(path, kMaxModelBytes));
  return ParsePaddleProgram(content, path);
}

absl::Status WritePaddleWeights(const paddle::ProgramDesc& program,
                                const proto::Model& model, ImportFiles* files) {
  HT_ASSIGN_OR_RETURN(const auto content, MappedFile::Open(files->params));
  HT_ASSIGN_OR_RETURN(
      const std::vector<PaddleTensor> all,
      ParsePaddleParams(content->bytes(), files->params, program));
  std::set<std::string> names;
  for (const auto* params : {&model.param(), &model.stat()}) {
    for (const proto::Parameter& one : *params) names.insert(one.name());
  }
  std::vector<Weight> weights;
  for (const PaddleTensor& one : all) {
    if (names.count(one.name) == 0) continue;
    weights.push_back({one.name, one.dtype, one.dims, one.bytes});
  }
  return WriteWeights(weights, files);
}

absl::StatusOr<ImportedModel> ImportPaddleFile(const std::string& content,
                                               const ImportWishes& wishes,
                                               ImportFiles* files) {
  HT_ASSIGN_OR_RETURN(const paddle::ProgramDesc program,
                      ParsePaddleProgram(content, files->model));
  PaddleOptions options;
  options.name = NameOf(*files);
  options.loss = wishes.loss;
  options.dims = wishes.dims;
  std::optional<paddle::ProgramDesc> startup;
  if (!files->startup.empty()) {
    HT_ASSIGN_OR_RETURN(startup, ReadPaddle(files->startup));
    options.startup = &*startup;
  }
  HT_ASSIGN_OR_RETURN(ImportedModel imported,
                      ImportPaddle(program, files->model, options));
  const bool named = !files->params.empty();
  if (!named) files->params = Stem(files->model) + ".pdiparams";
  files->no_weights = absl::StrCat(files->params, " is not there");
  if (named || std::filesystem::exists(files->params)) {
    HT_RETURN_IF_ERROR(
        WritePaddleWeights(program, *imported.model.model, files));
  }
  return imported;
}

// ---- ONNX.

absl::StatusOr<ImportedModel> ImportOnnxFile(const std::string& content,
                                             const ImportWishes& wishes,
                                             ImportFiles* files) {
  if (!files->startup.empty() || !files->params.empty()) {
    return UsageError("--startup and --params are for Paddle's programs; ",
                      "an ONNX model has its parameters in it");
  }
  HT_ASSIGN_OR_RETURN(const OnnxFile file, ParseOnnx(content, files->model));
  OnnxOptions options;
  options.name = NameOf(*files);
  options.loss = wishes.loss;
  options.class_axis = wishes.class_axis;
  options.dims = wishes.dims;
  HT_ASSIGN_OR_RETURN(OnnxModel model, ImportOnnx(file, options));
  files->no_weights = "the model has no parameters";
  // Cells are f32.
  std::vector<std::string> converted;
  converted.reserve(model.weights.size());
  std::vector<Weight> weights;
  for (const OnnxWeight& one : model.weights) {
    const OnnxTensor& from = one.tensor;
    Weight weight = {one.name, from.dtype, from.dims, from.bytes};
    if (IsFloat(from.dtype) && from.dtype != DType::kF32) {
      HT_ASSIGN_OR_RETURN(
          runtime::Tensor tensor,
          runtime::ConvertTensor(
              {one.name, from.dtype, from.dims, std::string(from.bytes)},
              DType::kF32));
      converted.push_back(std::move(tensor.bytes));
      weight.dtype = DType::kF32;
      weight.bytes = converted.back();
    }
    weights.push_back(std::move(weight));
  }
  if (!weights.empty()) HT_RETURN_IF_ERROR(WriteWeights(weights, files));
  return std::move(model.imported);
}

}  // namespace

absl::StatusOr<ImportedModel> ImportFile(const ImportWishes& wishes,
                                         ImportFiles* files) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(files->model, kMostBytes));
  if (files->out.empty()) files->out = Stem(files->model) + ".pbtxt";
  // A name decides where the content is of neither kind.
  const bool onnx =
      IsOnnx(content) || absl::EndsWithIgnoreCase(files->model, ".onnx");
  if (wishes.class_axis.has_value() && (!onnx || wishes.loss.empty())) {
    return UsageError("--class-axis is for a loss that is added to an ONNX ",
                      "model: --loss cross_entropy:LOGITS");
  }
  const auto import = onnx ? ImportOnnxFile : ImportPaddleFile;
  HT_ASSIGN_OR_RETURN(ImportedModel imported, import(content, wishes, files));
  HT_RETURN_IF_ERROR(WriteModel(imported, files));
  return imported;
}

}  // namespace tools
}  // namespace halftone
