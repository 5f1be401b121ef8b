#include "graph/import/paddle_import_testing.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/text_format.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"

namespace halftone {
namespace paddle_testing {

std::string Var(const std::string& name, const std::string& dims,
                const std::string& flags, const std::string& type) {
  return absl::StrCat("vars { name: '", name,
                      "' type { type: LOD_TENSOR lod_tensor { tensor { "
                      "data_type: ",
                      type, " dims: [", dims, "] } } } ", flags, " }\n");
}
std::string Param(const std::string& name, const std::string& dims) {
  return Var(name, dims, "persistable: true is_parameter: true");
}

std::string Op(const std::string& type, const std::vector<std::string>& in,
               const std::vector<std::string>& out, const std::string& attrs,
               int role) {
  std::string text = absl::StrCat("ops { type: '", type, "' ");
  const auto slots = [&text](const char* field,
                             const std::vector<std::string>& all) {
    for (const std::string& one : all) {
      const size_t colon = one.find(':');
      absl::StrAppend(
          &text, field, " { parameter: '", one.substr(0, colon),
          "' arguments: ['",
          absl::StrReplaceAll(one.substr(colon + 1), {{",", "', '"}}), "'] } ");
    }
  };
  slots("inputs", in);
  slots("outputs", out);
  return absl::StrCat(text, attrs,
                      " attrs { name: 'op_role' type: INT i: ", role, " } }\n");
}

std::string Longs(const char* name, const std::string& values) {
  return absl::StrCat("attrs { name: '", name, "' type: LONGS longs: [", values,
                      "] } ");
}

paddle::ProgramDesc ProgramOf(const std::string& block) {
  paddle::ProgramDesc program;
  const std::string text =
      absl::StrCat("blocks { idx: 0 parent_idx: -1 ", block,
                   " } version { version: 2006002 }");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &program))
      << text;
  return program;
}

absl::StatusOr<PaddleModel> Import(const std::string& block,
                                   PaddleOptions options) {
  options.name = "net";
  return ImportPaddle(ProgramOf(block), "net.pdmodel", options);
}

std::string Text(const std::string& block, const PaddleOptions& options) {
  const auto imported = Import(block, options);
  if (!imported.ok()) return std::string(imported.status().message());
  std::string text = PrintModel(*imported->model.model);
  return text.substr(text.find('\n') + 1);
}

}  // namespace paddle_testing
}  // namespace halftone
