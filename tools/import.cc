// halftone import: models of other systems as ours.
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "runtime/log/shown_activity.h"
#include "tools/common/command_line.h"
#include "tools/common/import_files.h"
#include "tools/common/show_answer.h"
#include "tools/report/import_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ImportFlags {
  ImportFiles files;
  ImportWishes wishes;
  bool json = false;
};

// "image=-1,3,224,224".
absl::Status AddDims(const std::string& text, ImportWishes* wishes) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  std::vector<int64_t>& dims = wishes->dims[parts.first];
  dims.clear();
  for (const absl::string_view word : absl::StrSplit(parts.second, ',')) {
    if (absl::SimpleAtoi(word, &dims.emplace_back())) continue;
    return UsageError("--dims ", text, ": expected FEED=DIM,DIM,...");
  }
  return absl::OkStatus();
}

absl::Status Import(ImportFlags& flags) {
  auto shown = std::make_unique<runtime::ShownActivity>("import");
  HT_ASSIGN_OR_RETURN(const ImportedModel imported,
                      ImportFile(flags.wishes, &flags.files));
  shown.reset();
  ShowAnswer(flags.json ? ImportJson(imported, flags.files)
                        : ImportText(imported, flags.files),
             flags.json);
  return absl::OkStatus();
}

}  // namespace

void AddImport(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ImportFlags>();
  Verb verb = app.AddVerb(
      "import", "a model of Paddle's or an ONNX model as a .pbtxt",
      "examples:\n"
      "  halftone import inference.pdmodel -o net.pbtxt\n"
      "  halftone import train.pdmodel --startup startup.pdmodel\n"
      "  halftone import forward.pdmodel --loss mean_0.tmp_0\n"
      "  halftone import resnet18.onnx -o resnet18.pbtxt\n"
      "  halftone import resnet18.onnx --loss cross_entropy:logits\n"
      "  halftone import gpt2.onnx --loss cross_entropy:logits --class-axis "
      "-1\n"
      "  halftone import net.pdmodel --params net.pdiparams --dims "
      "image=-1,3,224,224\n\n"
      "Writes the forward part of a program of Paddle's (ProgramDesc) or of\n"
      "an ONNX model (opsets 11 to 17, newer ones where the ops are the "
      "same),\n"
      "with its values' names, and its parameters (those of a .pdiparams that\n"
      "lies beside it, ONNX's initialisers) as safetensors, which --init\n"
      "takes. What stands in the way is told at once. PyTorch's exporter "
      "folds\n"
      "parameters into one another, batch norms into convolutions above all,\n"
      "unless it is told optimize=False: folded, a model predicts the same, "
      "but\n"
      "it is another one to train.");
  verb.AddOption("model", &flags->files.model, "a .pdmodel or .onnx")
      .Required();
  verb.AddOption("-o,--out", &flags->files.out,
                 "the .pbtxt; default: beside the model, with its name")
      .Writes();
  verb.AddOption("--loss", &flags->wishes.loss,
                 "Paddle: the value to train; default: what the op with role "
                 "256 makes. ONNX: cross_entropy:LOGITS, mse:VALUE or "
                 "bce:VALUE, with a feed of labels, of which cross_entropy "
                 "leaves out those of -100; default: none");
  verb.AddOption("--class-axis", &flags->wishes.class_axis,
                 "ONNX: the logits' dim of classes; default: 1, as PyTorch's "
                 "cross_entropy has it; -1: the last, as of language models");
  verb.AddOption("--startup", &flags->files.startup,
                 "Paddle's startup program, for initialisers; default: its "
                 "defaults");
  verb.AddOption(
      "--params", &flags->files.params,
      "Paddle's; default: the model's name with .pdiparams, if it is "
      "there");
  verb.AddOption(
      "--dims",
      [flags](const std::string& text) {
        return AddDims(text, &flags->wishes);
      },
      "FEED=DIM,DIM,...: in place of the program's; -1, the batch, first. It "
      "opens the batch of a graph that was exported for one sample; compare a "
      "prediction then");
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Import(*flags); });
}

}  // namespace tools
}  // namespace halftone
