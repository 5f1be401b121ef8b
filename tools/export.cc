// halftone export: a run's parameters as safetensors, or a rewritten program.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/output_file.h"
#include "graph/base/text.h"
#include "graph/io/compiled_model.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/source_weights.h"
#include "runtime/train/state.h"
#include "tools/common/command_line.h"
#include "tools/common/model_path.h"
#include "tools/common/rewritten_program.h"
#include "tools/report/export_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ExportFlags {
  std::string path, out, dtype = "f32", names, format = "safetensors";
  bool json = false;
};

absl::StatusOr<DType> ParseDType(const std::string& text) {
  const std::vector<std::string> known = {"f32", "f16", "bf16"};
  std::string name = absl::AsciiStrToLower(text);
  if (name == "fp16" || name == "fp32") name.erase(1, 1);
  for (const std::string& one : known) {
    if (one == name) return *DTypeFromName(name);
  }
  return UsageError("--dtype ", text, ": expected f32, f16 or bf16",
                    NearestHint(name, known));
}

absl::Status ExportProgram(const ExportFlags& flags) {
  if (!flags.names.empty() || flags.dtype != ExportFlags().dtype) {
    return UsageError(
        "--format pdmodel: a program; --names and --dtype are of "
        "parameters");
  }
  HT_ASSIGN_OR_RETURN(const RewrittenProgram program,
                      RewrittenForPaddle(flags.path));
  HT_RETURN_IF_ERROR(WriteOutput(flags.out, program.bytes));
  Show(flags.json ? ExportJson(flags.out, program) : ExportText(program),
       stdout);
  return absl::OkStatus();
}

absl::Status ExportParameters(const ExportFlags& flags) {
  HT_ASSIGN_OR_RETURN(const DType dtype, ParseDType(flags.dtype));
  const auto model_path = FindModel(flags.path);
  if (!model_path.ok() || model_path->run.empty()) {
    return CheckpointError(
        flags.path,
        !std::filesystem::exists(flags.path)        ? ": is not there"
        : std::filesystem::is_directory(flags.path) ? ": holds no model.htc"
                                                    : ": is a file",
        "; expected a run directory (--out of a run) or a checkpoint in it "
        "(ckpt/step-N)");
  }
  const std::string& file = model_path->file;
  HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(file));
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      ParseCompiledModel(content, file, ""));
  std::vector<std::string> said;
  HT_ASSIGN_OR_RETURN(const runtime::Checkpoint checkpoint,
                      runtime::ReadAnyState(flags.path, &said));
  for (const std::string& line : said) {
    ShowReport(absl::StrCat("warning  ", line, "\n"), stderr);
  }
  std::vector<runtime::Tensor> tensors =
      runtime::Parameters(*model.program, checkpoint.tensors);
  if (!flags.names.empty()) {
    HT_ASSIGN_OR_RETURN(tensors,
                        runtime::ToSourceNames(flags.names, *model.program,
                                               std::move(tensors)));
  }
  for (runtime::Tensor& tensor : tensors) {
    HT_ASSIGN_OR_RETURN(tensor, runtime::ConvertTensor(tensor, dtype));
  }
  HT_RETURN_IF_ERROR(
      WriteOutput(flags.out, runtime::SerializeSafetensors(tensors)));
  const ExportedParameters exported = {flags.out, checkpoint.manifest.step,
                                       dtype,
                                       model.strategy.amp().master_weights()};
  Show(flags.json ? ExportJson(exported, tensors)
                  : ExportText(exported, tensors),
       stdout);
  return absl::OkStatus();
}

absl::Status Export(const ExportFlags& flags) {
  const std::vector<std::string> known = {"safetensors", "pdmodel"};
  if (flags.format == known[0]) return ExportParameters(flags);
  if (flags.format == known[1]) return ExportProgram(flags);
  return UsageError("--format ", flags.format,
                    ": expected safetensors or pdmodel",
                    NearestHint(flags.format, known));
}

}  // namespace

void AddExport(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ExportFlags>();
  Verb verb = app.AddVerb(
      "export", "a run's parameters as safetensors",
      "examples:\n"
      "  halftone export runs/mnist -o mnist.safetensors\n"
      "  halftone export runs/mnist --dtype f16 -o small.safetensors\n"
      "  halftone export runs/resnet18 --names torchvision -o tv.safetensors\n"
      "  halftone export mnist.htc --format pdmodel -o mnist.pdmodel\n\n"
      "Parameters and running statistics of the newest good checkpoint, by\n"
      "name; `run --init` takes them back, under any of the names.\n"
      "Or the training program as the passes rewrite it, before it is lowered\n"
      "to a target, as a Paddle program: Netron shows it, casts and all.");
  verb.AddOption("run", &flags->path,
                 "run directory or checkpoint; for a program also a model")
      .Required();
  verb.AddOption("-o,--out", &flags->out, "the .safetensors file").Required();
  verb.AddOption("--dtype", &flags->dtype, "f32 (default) | f16 | bf16");
  verb.AddOption("--format", &flags->format,
                 "safetensors (parameters, default) | pdmodel (program)");
  verb.AddOption("--names", &flags->names,
                 "of a zoo model: names and orders of dims as in torchvision,\n"
                 "or hf (Hugging Face)");
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Export(*flags); });
}

}  // namespace tools
}  // namespace halftone
