#include "tools/common/onnx_model.h"

#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/export/onnx_export.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/targets/target.h"
#include "passes/named_passes.h"
#include "runtime/train/starting_parameters.h"
#include "tools/common/model_flags.h"
#include "tools/common/program_input.h"
#include "tools/common/run_flags.h"
#include "tools/common/run_parameters.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kLevel[] = "amp.level", kDType[] = "amp.dtype";
constexpr char kFlag[] = "--dtype";  // by which they are asked for

// Parameters in FP32, by name.
absl::StatusOr<std::vector<runtime::Tensor>> Parameters(
    ModelFlags flags, runtime::TrainConfig config, bool averages,
    WrittenOnnx* written) {
  flags.overrides = {{kLevel, "O0", kFlag}};
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags, /*may_recompile=*/true));
  HT_RETURN_IF_ERROR(FillConfig(model, &config));
  RankFlags one;
  one.ranks = 1;
  HT_ASSIGN_OR_RETURN(const LocalRanks ranks, MakeRanks(one, model.target));
  if (config.init.empty() && config.out.empty()) {
    written->said.push_back(
        "parameters are as initialised; --init takes others");
  }
  return runtime::StartingParameters(*model.program, *ranks.kernels, config,
                                     ranks.resources[0], averages,
                                     &written->said);
}

// The forward program with casts as `dtype` asks for them.
absl::StatusOr<ProgramInput> Rewritten(ModelFlags flags, DType dtype,
                                       const std::string& level) {
  if (IsLow(dtype)) {
    if (level == "O0") flags.overrides.push_back({kLevel, "O1", kFlag});
    flags.overrides.push_back({kDType, "fp16", kFlag});
  } else {
    flags.overrides.push_back({kLevel, "O0", kFlag});
  }
  HT_ASSIGN_OR_RETURN(ProgramInput input, ReadProgram(flags));
  input.options.strategy.clear_optimizer();
  HT_RETURN_IF_ERROR(
      passes::RunNamed(
          {"precision"},
          {input.options, input.kernels, {}, flags.compile.outputs}, {},
          *input.program)
          .status());
  return input;
}

// At O3 parameters are low.
absl::Status ToCellsDTypes(const Program& program,
                           std::vector<runtime::Tensor>* tensors) {
  for (runtime::Tensor& tensor : *tensors) {
    const CellId cell = program.FindCell(tensor.name);
    if (!cell.valid()) continue;
    const DType dtype = program.cell(cell).type.dtype;
    if (tensor.dtype == dtype) continue;
    HT_ASSIGN_OR_RETURN(tensor, runtime::ConvertTensor(tensor, dtype));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WrittenOnnx> WriteOnnx(const OnnxWish& wish) {
  ModelFlags flags;
  flags.path = wish.path;
  // Kernels do not matter; those of the CPU are there everywhere.
  flags.target = CpuTarget().name;
  runtime::TrainConfig config;
  config.init = wish.init;
  HT_RETURN_IF_ERROR(
      FindParameters("export", wish.path, /*best=*/false, &config));
  HT_ASSIGN_OR_RETURN(const ProgramInput source, ReadProgram(flags));
  flags.compile.outputs = source.program->outputs;
  if (wish.averages) {
    HT_RETURN_IF_ERROR(ExpectAverages(wish.path, source.options.strategy));
  }
  // As predict reads them.
  const bool averages =
      wish.averages ||
      (source.options.strategy.optimizer().has_ema() && wish.init.empty());
  if (flags.compile.outputs.empty()) {
    return UsageError("export ", wish.path, ": the model names no output");
  }
  WrittenOnnx written;
  written.dtype = wish.dtype;
  HT_ASSIGN_OR_RETURN(
      const ProgramInput input,
      Rewritten(flags, wish.dtype, source.options.strategy.amp().level()));
  const Program& program = *input.program;
  const Entry* const entry = program.FindEntry(kEvalEntry);
  if (entry == nullptr) return CompilerBug(wish.path, ": no eval entry");
  HT_ASSIGN_OR_RETURN(std::vector<runtime::Tensor> tensors,
                      Parameters(flags, std::move(config), averages, &written));
  HT_RETURN_IF_ERROR(ToCellsDTypes(program, &tensors));
  std::map<std::string, absl::string_view> cells;
  for (const runtime::Tensor& tensor : tensors) {
    cells[tensor.name] = tensor.bytes;
  }
  OnnxExportOptions options;
  options.file = wish.path;
  options.data_file =
      std::filesystem::path(wish.out).filename().string() + ".data";
  HT_ASSIGN_OR_RETURN(const OnnxExport made,
                      ExportOnnx(program, *entry, cells, options));
  if (!made.data.empty()) {
    written.data_file = wish.out + ".data";
    HT_RETURN_IF_ERROR(WriteOutput(written.data_file, made.data));
  }
  HT_RETURN_IF_ERROR(WriteOutput(wish.out, made.model));
  written.nodes = made.nodes;
  written.casts = entry->block().CountOf(Ops().Find("cast"));
  written.initializers = made.initializers;
  written.bytes = made.weight_bytes;
  written.inputs = made.inputs;
  written.outputs = made.outputs;
  return written;
}

}  // namespace tools
}  // namespace halftone
