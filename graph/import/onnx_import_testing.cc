#include "graph/import/onnx_import_testing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "graph/base/error.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"

namespace halftone {
namespace onnx_testing {

std::string Info(const std::string& name, const std::vector<std::string>& dims,
                 int type) {
  std::string shape;
  for (const std::string& dim : dims) {
    const bool number = dim[0] >= '0' && dim[0] <= '9';
    absl::StrAppend(&shape, "dim { ", number ? "dim_value: " : "dim_param: \"",
                    dim, number ? "" : "\"", " } ");
  }
  return absl::StrCat("{ name: \"", name,
                      "\" type { tensor_type { elem_type: ", type, " shape { ",
                      shape, "} } } }");
}

std::string Node(const std::string& type, const std::vector<std::string>& in,
                 const std::string& out, const std::string& rest) {
  std::string text = absl::StrCat("node { op_type: \"", type, "\" output: \"",
                                  out, "\" ", rest);
  for (const std::string& name : in) {
    absl::StrAppend(&text, " input: \"", name, "\"");
  }
  return text + " }\n";
}

std::string Ints(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = absl::StrCat("initializer { name: \"", name,
                                  "\" data_type: 7 dims: ", values.size());
  for (const int64_t value : values) {
    absl::StrAppend(&text, " int64_data: ", value);
  }
  return text + " }\n";
}

std::string IntAttr(const std::string& name, int64_t value) {
  return absl::StrCat("attribute { name: \"", name, "\" type: INT i: ", value,
                      " }");
}

std::string Bytes(const std::string& graph, int opset) {
  onnx::ModelProto model;
  const std::string text =
      absl::StrCat("ir_version: 8 opset_import { version: ", opset,
                   " } graph { ", graph, " }");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model))
      << text;
  return model.SerializeAsString();
}

absl::StatusOr<OnnxModel> ImportBytes(const std::string& bytes,
                                      OnnxOptions options) {
  HT_ASSIGN_OR_RETURN(const OnnxFile file, ParseOnnx(bytes, "net.onnx"));
  options.name = "net";
  return ImportOnnx(file, options);
}

std::string Import(const std::string& graph, OnnxOptions options) {
  const auto model = ImportBytes(Bytes(graph), std::move(options));
  if (model.ok()) return PrintModel(*model->imported.model.model);
  EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kModel);
  return std::string(model.status().message());
}

std::string Graph(const std::string& body) {
  return absl::StrCat("input ", Info("x", {"N", "4", "6"}), " output ",
                      Info("y", {}), "\n", body);
}

}  // namespace onnx_testing
}  // namespace halftone
