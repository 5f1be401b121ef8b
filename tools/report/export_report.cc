#include "tools/report/export_report.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/export/onnx_export.h"
#include "nlohmann/json.hpp"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

int64_t BytesOf(const std::vector<runtime::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const runtime::Tensor& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return bytes;
}

}  // namespace

std::string ExportText(const ExportedParameters& exported,
                       const std::vector<runtime::Tensor>& tensors) {
  return absl::StrCat(runtime::Count(tensors.size(), "tensor"), " ",
                      absl::AsciiStrToUpper(Name(exported.dtype)),
                      exported.from_copies ? " from the FP32 copies" : "", ", ",
                      WithCommas(BytesOf(tensors)), " B of data\n");
}

std::string ExportText(const RewrittenProgram& program) {
  return absl::StrCat(runtime::Count(program.ops, "op"), ", ",
                      runtime::Count(program.casts, "cast"),
                      " among them, as a Paddle program\n");
}

std::string ExportText(const WrittenOnnx& written) {
  return absl::StrCat(
      runtime::Count(written.nodes, "node"), ", ",
      runtime::Count(written.initializers, "initialiser"), " of ",
      WithCommas(written.bytes), " B",
      written.data_file.empty() ? "" : " in " + written.data_file,
      ", as an ONNX model, opset ", kOnnxOpset,
      IsLow(written.dtype) ? absl::StrCat(", ", Name(written.dtype), " with ",
                                          runtime::Count(written.casts, "cast"))
                           : "",
      "\n");
}

std::string ExportJson(const ExportedParameters& exported,
                       const std::vector<runtime::Tensor>& tensors) {
  Json json = {{"schema", 1},
               {"path", exported.path},
               {"step", exported.step},
               {"dtype", std::string(Name(exported.dtype))},
               {"from_fp32_copies", exported.from_copies},
               {"bytes", BytesOf(tensors)},
               {"tensors", Json::array()}};
  for (const runtime::Tensor& tensor : tensors) {
    json["tensors"].push_back({{"name", tensor.name}, {"shape", tensor.dims}});
  }
  return JsonText(json);
}

std::string ExportJson(const std::string& path,
                       const RewrittenProgram& program) {
  return JsonText(Json{{"schema", 1},
                       {"path", path},
                       {"ops", program.ops},
                       {"casts", program.casts}});
}

std::string ExportJson(const std::string& path, const WrittenOnnx& written) {
  Json json = {{"schema", 1},
               {"path", path},
               {"opset", kOnnxOpset},
               {"dtype", std::string(Name(written.dtype))},
               {"nodes", written.nodes},
               {"casts", written.casts},
               {"initializers", written.initializers},
               {"bytes", written.bytes},
               {"inputs", written.inputs},
               {"outputs", written.outputs}};
  if (!written.data_file.empty()) json["data_file"] = written.data_file;
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
