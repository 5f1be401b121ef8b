#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "graph/base/disk/directory.h"
#include "graph/base/disk/sealed_folder.h"
#include "graph/base/error.h"
#include "graph/base/json/json_fields.h"
#include "graph/base/system/system_error.h"
#include "graph/strategy/fields.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr char kStrategy[] = "strategy.pbtxt";
constexpr char kOpLists[] = "op_lists.pbtxt";
// Of the model, by its kind.
constexpr const char* kModels[] = {"model.pbtxt", "model.pb", "model.ht",
                                   "model.htc"};

std::string ModelName(const CompileInputs& inputs) {
  const auto kind = DetectKind(inputs.model, inputs.model_file);
  return kModels[static_cast<int>(kind.value_or(FileKind::kModelBinary))];
}

std::string OpListsText(const proto::OpLists& lists) {
  proto::OpListsFile file;
  *file.mutable_op_lists() = lists;
  std::string text;
  google::protobuf::TextFormat::PrintToString(file, &text);
  return text;
}

Json ToJson(const Reproducer& reproducer) {
  const CompileInputs& inputs = reproducer.inputs;
  Json origins = Json::object(), libraries = Json::array();
  for (const auto& [path, origin] : inputs.options.origins) {
    origins[path] = origin;
  }
  for (const OpLibrary& library : reproducer.op_libraries) {
    libraries.push_back({{"name", library.name},
                         {"version", library.version},
                         {"file", library.file},
                         {"hash", library.hash}});
  }
  return {{"schema", kSchema},
          {"version", reproducer.version},
          {"build", reproducer.build},
          {"message", reproducer.message},
          {"pass", reproducer.pass},
          {"command", reproducer.command},
          {"model_file", inputs.model_file},
          {"target", inputs.target},
          {"verify_each", inputs.flags.verify_each},
          {"report_entry", inputs.flags.report_entry},
          {"taps", inputs.flags.taps},
          {"outputs", inputs.flags.outputs},
          {"passes", inputs.passes},
          {"op_libraries", std::move(libraries)},
          {"origins", std::move(origins)}};
}

void ReadTexts(const char* field, JsonFields* fields,
               std::vector<std::string>* texts) {
  for (const nlohmann::json& text : fields->List(field)) {
    if (text.is_string()) {
      texts->push_back(text.get<std::string>());
    } else {
      fields->Fail(
          absl::StrCat(field, ": expected texts, found ", ShownJson(text)));
    }
  }
}

void ReadLibraries(JsonFields* fields, std::vector<OpLibrary>* libraries) {
  for (const nlohmann::json& object : fields->List("op_libraries")) {
    OpLibrary& library = libraries->emplace_back();
    JsonFields of(object, "op_libraries");
    of.Text("name", &library.name);
    of.Text("version", &library.version);
    of.Text("file", &library.file);
    of.Text("hash", &library.hash);
    if (!of.status().ok()) fields->Fail(of.status().message());
  }
}

absl::Status FromJson(const SealedFolder& folder, Reproducer* reproducer,
                      std::map<std::string, std::string>* origins) {
  const std::string path = folder.manifest_path();
  JsonFields fields(folder.facts(), path);
  CompileInputs& inputs = reproducer->inputs;
  int64_t schema = 0;
  fields.Integer("schema", kSchema, kSchema, &schema);
  fields.Text("version", &reproducer->version);
  fields.Text("build", &reproducer->build);
  fields.Text("message", &reproducer->message);
  fields.Text("pass", &reproducer->pass);
  ReadTexts("command", &fields, &reproducer->command);
  fields.Text("model_file", &inputs.model_file);
  fields.Text("target", &inputs.target);
  fields.Bool("verify_each", &inputs.flags.verify_each);
  fields.Text("report_entry", &inputs.flags.report_entry);
  ReadTexts("taps", &fields, &inputs.flags.taps);
  ReadTexts("outputs", &fields, &inputs.flags.outputs);
  ReadTexts("passes", &fields, &inputs.passes);
  ReadLibraries(&fields, &reproducer->op_libraries);
  const nlohmann::json& all = fields.Object("origins");
  JsonFields each(all, path + ": origins");
  for (const auto& [name, origin] : all.items()) {
    each.Text(name.c_str(), &(*origins)[name]);
  }
  if (!each.status().ok()) fields.Fail(each.status().message());
  return Reclassified(fields.status(), ExitCode::kCheckpoint);
}

absl::Status CheckLibraries(const SealedFolder& folder,
                            const Reproducer& reproducer) {
  for (const OpLibrary& needed : reproducer.op_libraries) {
    if (FindOpLibrary(needed.name) != nullptr) continue;
    return ModelError(folder.manifest_path(), ": the compile had ops of ",
                      needed.name, " ", needed.version, " (", needed.file,
                      ", XXH64 ", needed.hash,
                      "): load a library of that name: --op-library FILE");
  }
  return absl::OkStatus();
}

// The options that a compile with these files has.
absl::StatusOr<passes::Options> ReadOptions(
    const SealedFolder& folder,
    const std::map<std::string, std::string>& origins) {
  HT_ASSIGN_OR_RETURN(const std::string text, folder.Read(kStrategy));
  const auto strategy = passes::ParseStrategy(text, kStrategy);
  if (!strategy.ok()) {
    return folder.Damaged(kStrategy, strategy.status().message());
  }
  proto::OpListsFile lists;
  if (folder.Has(kOpLists)) {
    HT_ASSIGN_OR_RETURN(const std::string file, folder.Read(kOpLists));
    const absl::Status parsed = ParseTextProto(file, kOpLists, &lists);
    if (!parsed.ok()) return folder.Damaged(kOpLists, parsed.message());
  }
  return passes::ResolveOptions(
      passes::RestoreStrategy(strategy->strategy, origins, lists.op_lists()),
      {});
}

}  // namespace

absl::Status WriteReproducer(const std::string& directory,
                             const Reproducer& reproducer) {
  HT_ASSIGN_OR_RETURN(const Directory folder, Directory::Open(directory));
  const CompileInputs& inputs = reproducer.inputs;
  FolderFiles files = {{ModelName(inputs), inputs.model},
                       {kStrategy, StrategyText(inputs.options.strategy)}};
  if (!inputs.options.strategy.amp().op_lists().empty()) {
    files.emplace_back(kOpLists, OpListsText(inputs.options.op_lists));
  }
  return SealFolder(folder, kReproducerManifest, ToJson(reproducer), files);
}

absl::StatusOr<Reproducer> ReadReproducer(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const SealedFolder folder,
                      SealedFolder::Open(path, kReproducerManifest));
  Reproducer reproducer;
  std::map<std::string, std::string> origins;
  HT_RETURN_IF_ERROR(FromJson(folder, &reproducer, &origins));
  const auto* model =
      std::find_if(std::begin(kModels), std::end(kModels),
                   [&folder](const char* name) { return folder.Has(name); });
  HT_ASSIGN_OR_RETURN(
      reproducer.inputs.model,
      folder.Read(model == std::end(kModels) ? kModels[0] : *model));
  HT_RETURN_IF_ERROR(CheckLibraries(folder, reproducer));
  HT_ASSIGN_OR_RETURN(reproducer.inputs.options, ReadOptions(folder, origins));
  return reproducer;
}

}  // namespace tools
}  // namespace halftone
