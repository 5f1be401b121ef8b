#include "tests/golden/paddle_program.h"

#include <zlib.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
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

proto::DataType TypeOf(const json& var) {
  const std::string name = var["dtype"];
  if (name == "float32") return proto::F32;
  if (name == "int64") return proto::I64;
  HT_CHECK(false, "a dtype that these programs do not have");
  return proto::INVALID;
}

// A slot of ours that holds what Paddle's of the same name holds.
bool HasInput(const OpSchema& schema, const std::string& slot) {
  return schema.FindInput(slot) >= 0;
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

void AddAttribute(const std::string& name, const json& value,
                  const OpSchema& schema, proto::OpNode* node) {
  const std::string ours = name == "dropout_prob" ? "p" : name;
  const int index = schema.FindAttr(ours);
  if (index < 0) return;
  proto::Attribute& attr = *node->add_attr();
  attr.set_name(ours);
  switch (KindOf(schema.attrs()[index].default_value)) {
    case AttrKind::kBool:
      return attr.set_b(value);
    case AttrKind::kInt:
      return attr.set_i(value);
    case AttrKind::kFloat:
      return attr.set_f(value);
    case AttrKind::kString:
      return attr.set_s(value.get<std::string>());
    default:
      for (const json& member : value) attr.add_ints(member);
  }
}

proto::OpNode NodeOf(const json& op) {
  const OpSchema& schema = *Ops().Find(op["type"].get<std::string>());
  proto::OpNode node;
  node.set_type(op["type"].get<std::string>());
  for (const auto& [slot, names] : op["inputs"].items()) {
    if (!HasInput(schema, slot)) continue;
    proto::SlotVars& vars = *node.add_in();
    vars.set_slot(slot);
    for (const json& name : names) vars.add_var(name.get<std::string>());
  }
  proto::SlotVars& out = *node.add_out();
  for (const Slot& slot : schema.outputs()) {
    if (!op["outputs"].contains(slot.name)) continue;
    out.set_slot(slot.name);
    out.add_var(FirstOutput(op));
    break;
  }
  for (const auto& [name, value] : op["attrs"].items()) {
    AddAttribute(name, value, schema, &node);
  }
  if (schema.FindAttr("ceil_windows") >= 0) {
    AddAttribute("ceil_windows", "all", schema, &node);
  }
  return node;
}

void AddVariable(const std::string& name, const json& var,
                 proto::Model* model) {
  const bool trained = !var["stop_gradient"];
  proto::Parameter& parameter =
      trained ? *model->add_param() : *model->add_stat();
  parameter.set_name(name);
  for (int64_t dim : var["shape"]) parameter.add_dims(dim);
  parameter.mutable_init()->set_constant(1);
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

ModelFile PaddleModel(const json& paddle) {
  ModelFile file;
  proto::Model& model = file.model;
  file.file = paddle["net"];
  model.set_name(paddle["net"].get<std::string>());
  for (const std::string name : paddle["feeds"]) {
    const json& var = paddle["vars"][name];
    proto::Feed& feed = *model.add_feed();
    feed.set_name(name);
    feed.set_dtype(TypeOf(var));
    for (int64_t dim : var["shape"]) feed.add_dims(dim);
  }
  for (const auto& [name, var] : paddle["vars"].items()) {
    if (var["is_parameter"]) AddVariable(name, var, &model);
  }
  std::string counted;
  for (const json& op : paddle["ops"]) {
    *model.add_op() = NodeOf(op);
    if (FirstOutput(op) == paddle["loss"]) counted = op["inputs"]["X"][0];
  }
  model.mutable_loss()->set_var(paddle["loss"].get<std::string>());
  model.mutable_loss()->set_mean_over(counted);
  return file;
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
