#include "tests/golden/paddle_program.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

using nlohmann::json;

absl::StatusOr<std::string> ReadGzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return ModelError(path, ": cannot be opened");
  std::string content;
  char buffer[1 << 16];
  int read = 0;
  while ((read = gzread(file, buffer, sizeof(buffer))) > 0) {
    content.append(buffer, read);
  }
  gzclose(file);
  if (read < 0) return ModelError(path, ": is damaged");
  return content;
}

std::string FirstOutput(const json& op) {
  const OpSchema* schema = Ops().Find(op["type"].get<std::string>());
  HT_CHECK(schema != nullptr, "an op that we do not have");
  for (const Slot& slot : schema->outputs()) {
    if (op["outputs"].contains(slot.name)) return op["outputs"][slot.name][0];
  }
  HT_CHECK(false, "an op without an output that we have");
  return "";
}

}  // namespace

absl::StatusOr<json> ReadPaddle(const std::string& name) {
  const std::string path =
      absl::StrCat("tests/golden/paddle/", name, ".json.gz");
  HT_ASSIGN_OR_RETURN(const std::string content, ReadGzip(path));
  json parsed = json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return ModelError(path, ": is not JSON");
  return parsed;
}

absl::StatusOr<PaddleModel> ImportPaddle(const std::string& name,
                                         const std::string& loss) {
  const std::string path =
      absl::StrCat("tests/golden/paddle/", name, ".pdmodel.gz");
  HT_ASSIGN_OR_RETURN(const std::string content, ReadGzip(path));
  HT_ASSIGN_OR_RETURN(const paddle::ProgramDesc program,
                      ParsePaddleProgram(content, path));
  PaddleOptions options;
  options.name = name;
  options.loss = loss;
  return ImportPaddle(program, path, options);
}

proto::OpLists PaddleOpLists(const json& paddle) {
  const json& lists = paddle["amp"]["lists"];
  proto::OpLists result;
  for (const std::string op : lists["white"]) result.add_white(op);
  for (const std::string op : lists["black"]) result.add_black(op);
  for (const std::string op : lists["gray"]) result.add_gray(op);
  return result;
}

PaddleDecisions DecisionsOf(const json& paddle) {
  PaddleDecisions decisions;
  // By the name of a cast's output: its source and dtype.
  std::map<std::string, std::pair<std::string, std::string>> casts;
  for (const json& op : paddle["ops"]) {
    const std::string output = FirstOutput(op);
    if (op["type"] == "cast") {
      const std::string dtype = paddle["vars"][output]["dtype"];
      casts[output] = {op["inputs"]["X"][0], dtype};
      continue;
    }
    const auto verdict = op.find("verdict");  // none: left alone
    const bool decided = verdict != op.end() && !verdict->is_null();
    decisions.precisions[output] =
        decided ? verdict->get<std::string>() : "float32";
    for (const auto& [slot, names] : op["inputs"].items()) {
      for (const std::string name : names) {
        const auto cast = casts.find(name);
        if (cast == casts.end()) continue;
        decisions.casts.insert(
            {cast->second.first, cast->second.second, output});
      }
    }
  }
  return decisions;
}

}  // namespace halftone
