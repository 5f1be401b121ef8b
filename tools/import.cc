// halftone import: models of other systems as ours.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/output_file.h"
#include "graph/import/paddle_import.h"
#include "graph/import/paddle_params.h"
#include "graph/io/model_printer.h"
#include "runtime/checkpoint/safetensors.h"
#include "tools/common/command_line.h"
#include "tools/report/import_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ImportFlags {
  ImportFiles files;
  PaddleOptions options;
  bool json = false;
};

// models/x of models/x.pdmodel.
std::string Stem(const std::string& path) {
  return std::filesystem::path(path).replace_extension().string();
}

// "image=-1,3,224,224".
absl::Status AddDims(const std::string& text, PaddleOptions* options) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  std::vector<int64_t>& dims = options->dims[parts.first];
  dims.clear();
  for (const absl::string_view word : absl::StrSplit(parts.second, ',')) {
    if (absl::SimpleAtoi(word, &dims.emplace_back())) continue;
    return UsageError("--dims ", text, ": expected FEED=DIM,DIM,...");
  }
  return absl::OkStatus();
}

absl::StatusOr<paddle::ProgramDesc> ReadPaddle(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(path, kMaxModelBytes));
  return ParsePaddleProgram(content, path);
}

// Those of the model's parameters and statistics, as safetensors.
absl::Status WriteWeights(const paddle::ProgramDesc& program,
                          const proto::Model& model, ImportFiles* files) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(files->params, int64_t{1} << 36));
  HT_ASSIGN_OR_RETURN(const std::vector<PaddleTensor> all,
                      ParsePaddleParams(content, files->params, program));
  std::set<std::string> names;
  for (const auto* params : {&model.param(), &model.stat()}) {
    for (const proto::Parameter& one : *params) names.insert(one.name());
  }
  std::vector<runtime::Tensor> tensors;
  for (const PaddleTensor& one : all) {
    if (names.count(one.name) == 0) continue;
    tensors.push_back({one.name, one.dtype, one.dims, std::string(one.bytes)});
    files->weight_bytes += static_cast<int64_t>(one.bytes.size());
  }
  files->tensors = static_cast<int64_t>(tensors.size());
  files->weights = Stem(files->out) + ".safetensors";
  return WriteOutput(files->weights, runtime::SerializeSafetensors(tensors));
}

absl::Status Import(ImportFlags& flags) {
  ImportFiles& files = flags.files;
  HT_ASSIGN_OR_RETURN(const paddle::ProgramDesc program,
                      ReadPaddle(files.model));
  std::optional<paddle::ProgramDesc> startup;
  if (!files.startup.empty()) {
    HT_ASSIGN_OR_RETURN(startup, ReadPaddle(files.startup));
    flags.options.startup = &*startup;
  }
  flags.options.name =
      std::filesystem::path(Stem(files.model)).filename().string();
  HT_ASSIGN_OR_RETURN(const PaddleModel imported,
                      ImportPaddle(program, files.model, flags.options));
  if (files.out.empty()) files.out = Stem(files.model) + ".pbtxt";
  const bool named = !files.params.empty();
  if (!named) files.params = Stem(files.model) + ".pdiparams";
  if (named || std::filesystem::exists(files.params)) {
    HT_RETURN_IF_ERROR(WriteWeights(program, imported.model.model, &files));
  }
  const std::string text = PrintModel(imported.model.model);
  files.bytes = static_cast<int64_t>(text.size());
  HT_RETURN_IF_ERROR(WriteOutput(files.out, text));
  if (flags.json) {
    Show(ImportJson(imported, files), stdout);
  } else {
    ShowReport(ImportText(imported, files), stdout);
  }
  return absl::OkStatus();
}

}  // namespace

void AddImport(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ImportFlags>();
  Verb verb = app.AddVerb(
      "import", "a model of Paddle's as a .pbtxt",
      "examples:\n"
      "  halftone import inference.pdmodel -o net.pbtxt\n"
      "  halftone import train.pdmodel --startup startup.pdmodel\n"
      "  halftone import forward.pdmodel --loss mean_0.tmp_0\n"
      "  halftone import net.pdmodel --params net.pdiparams --dims "
      "image=-1,3,224,224\n\n"
      "Writes the forward part of a program (ProgramDesc), with its values'\n"
      "names, and the parameters that lie beside it (.pdiparams) as\n"
      "safetensors, which --init takes. What stands in the way is told at\n"
      "once.");
  verb.AddOption("model", &flags->files.model, "a .pdmodel").Required();
  verb.AddOption("-o,--out", &flags->files.out,
                 "the .pbtxt; default: beside the model, with its name");
  verb.AddOption("--loss", &flags->options.loss,
                 "the value to train; default: what the op with role 256 "
                 "makes");
  verb.AddOption("--startup", &flags->files.startup,
                 "startup program, for initialisers; default: Paddle's "
                 "defaults");
  verb.AddOption("--params", &flags->files.params,
                 "default: the model's name with .pdiparams, if it is there");
  verb.AddOption(
      "--dims",
      [flags](const std::string& text) {
        return AddDims(text, &flags->options);
      },
      "FEED=DIM,DIM,...: in place of the program's; -1, the batch, first");
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Import(*flags); });
}

}  // namespace tools
}  // namespace halftone
