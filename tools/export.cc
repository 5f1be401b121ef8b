// halftone export: parameters, a rewritten program, or both, for others.
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/base/text.h"
#include "runtime/checkpoint/safetensors.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/onnx_model.h"
#include "tools/common/rewritten_program.h"
#include "tools/common/run_parameters.h"
#include "tools/common/show_answer.h"
#include "tools/report/export_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ExportFlags {
  std::string path, out, dtype = "f32", names, format, init;
  std::vector<std::string> op_libraries;
  bool ema = false, json = false;
};

absl::Status ExportProgram(const ExportFlags& flags) {
  if (!flags.names.empty() || flags.ema || flags.dtype != ExportFlags().dtype) {
    return UsageError(
        "--format pdmodel: of parameters are --names, --dtype and --ema");
  }
  HT_ASSIGN_OR_RETURN(const RewrittenProgram program,
                      RewrittenForPaddle(flags.path));
  HT_RETURN_IF_ERROR(WriteOutput(flags.out, program.bytes));
  ShowAnswer(flags.json ? ExportJson(flags.out, program) : ExportText(program),
             flags.json);
  return absl::OkStatus();
}

absl::Status WriteOnnxModel(const ExportFlags& flags) {
  if (!flags.names.empty()) {
    return UsageError("--format onnx: a program; --names is of parameters");
  }
  HT_ASSIGN_OR_RETURN(const DType dtype, ExportedDType(flags.dtype));
  if (dtype == DType::kBF16) {
    return UsageError("--format onnx --dtype bf16: convolutions and others of ",
                      "ONNX's opset 17 do not take it; expected f32 or f16");
  }
  HT_ASSIGN_OR_RETURN(
      const WrittenOnnx written,
      WriteOnnx({flags.path, flags.init, flags.out, dtype, flags.ema}));
  for (const std::string& line : written.said) {
    ShowReport(absl::StrCat("note     ", line, "\n"), stderr);
  }
  ShowAnswer(flags.json ? ExportJson(flags.out, written) : ExportText(written),
             flags.json);
  return absl::OkStatus();
}

absl::Status ExportParameters(const ExportFlags& flags) {
  HT_ASSIGN_OR_RETURN(const DType dtype, ExportedDType(flags.dtype));
  HT_ASSIGN_OR_RETURN(
      const RunParameters made,
      ReadRunParameters(flags.path, flags.names, dtype, flags.ema));
  for (const std::string& line : made.said) {
    ShowReport(absl::StrCat("warning  ", line, "\n"), stderr);
  }
  HT_RETURN_IF_ERROR(
      WriteOutput(flags.out, runtime::SerializeSafetensors(made.tensors)));
  const ExportedParameters exported = {flags.out, made.step, dtype,
                                       made.from_copies};
  ShowAnswer(flags.json ? ExportJson(exported, made.tensors)
                        : ExportText(exported, made.tensors),
             flags.json);
  return absl::OkStatus();
}

absl::Status Export(const ExportFlags& flags) {
  HT_RETURN_IF_ERROR(LoadOpLibraries(flags.op_libraries));
  const std::vector<std::string> known = {"onnx", "pdmodel", "safetensors"};
  std::string format = flags.format;
  for (const std::string& name : known) {
    if (flags.format.empty() && absl::EndsWith(flags.out, "." + name))
      format = name;
  }
  if (format == known[0]) return WriteOnnxModel(flags);
  if (!flags.init.empty()) {
    return UsageError("--init: of --format onnx, which has parameters, too");
  }
  if (format == known[1]) return ExportProgram(flags);
  if (format.empty() || format == known[2]) return ExportParameters(flags);
  return UsageError("--format ", format, ": expected ",
                    absl::StrJoin(known, ", "), NearestHint(format, known));
}

}  // namespace

void AddExport(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ExportFlags>();
  Verb verb = app.AddVerb(
      "export",
      "a run's parameters as safetensors, or a model as others read it",
      "examples:\n"
      "  halftone export runs/mnist -o mnist.safetensors\n"
      "  halftone export runs/resnet18 --names torchvision -o tv.safetensors\n"
      "  halftone export mnist.htc -o mnist.pdmodel\n"
      "  halftone export net.pbtxt --init net.safetensors --dtype f16 \\\n"
      "      -o net.onnx\n\n"
      "Parameters and running statistics of the newest good checkpoint, by\n"
      "name; `run --init` takes them back, under any of the names.\n"
      "Or the training program as passes rewrite it, before it is lowered to\n"
      "a target, as a Paddle program: Netron shows it, casts and all.\n"
      "Or what predict computes, parameters included, as an ONNX model (opset\n"
      "17): FP32, or with --dtype f16 the casts of its level (O1 if O0); its\n"
      "weights in a file beside it, FILE.data, beyond 2 GB.");
  verb.AddOption("run", &flags->path,
                 "run directory or checkpoint; for a program also a model")
      .Required();
  verb.AddOption("-o,--out", &flags->out, "the .safetensors, .pdmodel or .onnx")
      .Writes()
      .Required();
  verb.AddOption("--dtype", &flags->dtype,
                 "f32 (default) | f16 | bf16 (of parameters)");
  verb.AddOption(
      "--format", &flags->format,
      "safetensors (parameters) | pdmodel | onnx; default: as --out\n"
      "ends, or else safetensors");
  verb.AddOption("--init", &flags->init,
                 "of onnx: parameters from a .safetensors or a run");
  verb.AddOption("--names", &flags->names,
                 "of a zoo model: names and orders of dims as in torchvision,\n"
                 "hf (Hugging Face) or pytorch-unet (milesial/Pytorch-UNet)");
  AddOpLibraryFlag(verb, &flags->op_libraries);
  verb.AddSwitch("--ema", &flags->ema,
                 "parameters as eval and predict read them: averages\n"
                 "(optimizer.ema); an ONNX model has those without it, too");
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Export(*flags); });
}

}  // namespace tools
}  // namespace halftone
