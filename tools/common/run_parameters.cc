#include "tools/common/run_parameters.h"

#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "graph/io/compiled_model.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/source_weights.h"
#include "runtime/train/state.h"
#include "tools/common/model_path.h"

namespace halftone {
namespace tools {

absl::Status ExpectAverages(const std::string& path,
                            const proto::Strategy& strategy) {
  if (strategy.optimizer().has_ema()) return absl::OkStatus();
  return UsageError("--ema: ", path,
                    " has no averages of its parameters: its strategy has no "
                    "optimizer.ema; leave --ema out");
}

absl::StatusOr<DType> ExportedDType(const std::string& text) {
  const std::vector<std::string> known = {"f32", "f16", "bf16"};
  std::string name = absl::AsciiStrToLower(text);
  if (name == "fp16" || name == "fp32") name.erase(1, 1);
  if (absl::c_linear_search(known, name)) return *DTypeFromName(name);
  return UsageError("--dtype ", text, ": expected f32, f16 or bf16",
                    NearestHint(name, known));
}

absl::StatusOr<RunParameters> ReadRunParameters(const std::string& path,
                                                const std::string& names,
                                                DType dtype, bool averages) {
  const auto model_path = FindModel(path);
  if (!model_path.ok() || model_path->run.empty()) {
    return CheckpointError(path,
                           !std::filesystem::exists(path) ? ": is not there"
                           : std::filesystem::is_directory(path)
                               ? ": holds no model.htc"
                               : ": is a file",
                           "; expected a run directory (--out of a run) or a "
                           "checkpoint in it (ckpt/step-N)");
  }
  const std::string& file = model_path->file;
  HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(file));
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      ParseCompiledModel(content, file, ""));
  if (averages) HT_RETURN_IF_ERROR(ExpectAverages(path, model.strategy));
  RunParameters made;
  HT_ASSIGN_OR_RETURN(runtime::Checkpoint checkpoint,
                      runtime::ReadAnyState(model_path->checkpoint.empty()
                                                ? model_path->run
                                                : model_path->checkpoint,
                                            &made.said));
  made.step = checkpoint.manifest.step;
  made.from_copies = model.strategy.amp().master_weights();
  if (averages) {
    checkpoint.tensors =
        runtime::Averages(*model.program, std::move(checkpoint.tensors));
  }
  made.tensors = runtime::Parameters(*model.program, checkpoint.tensors);
  if (!names.empty()) {
    HT_ASSIGN_OR_RETURN(
        made.tensors,
        runtime::ToSourceNames(names, *model.program, std::move(made.tensors)));
  }
  for (runtime::Tensor& tensor : made.tensors) {
    if (!IsFloat(tensor.dtype)) continue;
    HT_ASSIGN_OR_RETURN(tensor, runtime::ConvertTensor(tensor, dtype));
  }
  return made;
}

}  // namespace tools
}  // namespace halftone
