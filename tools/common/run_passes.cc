#include "tools/common/run_passes.h"

#include <memory>
#include <utility>

#include "graph/base/error.h"
#include "passes/compile.h"
#include "passes/named_passes.h"
#include "tools/common/bug_report.h"
#include "tools/common/model_flags.h"

namespace halftone {
namespace tools {
namespace {

absl::StatusOr<std::vector<passes::PassRun>> Run(
    const std::vector<std::string>& names, const passes::CompileFlags& flags,
    ProgramInput* input) {
  passes::PassPipeline::Settings settings;
  settings.verify_each = true;
  settings.dump_dir = flags.dump_dir;
  settings.dump_after = flags.dump_after;
  return passes::RunNamed(names, {input->options, input->kernels, flags.taps},
                          std::move(settings), *input->program);
}

}  // namespace

absl::StatusOr<std::vector<passes::PassRun>> RunPasses(
    const std::vector<std::string>& names, const passes::CompileFlags& flags,
    ProgramInput* input) {
  const BugReport report([&]() -> absl::StatusOr<CompileInputs> {
    return CompileInputs{input->content, input->file,
                         input->options, input->kernels.target().name,
                         flags,          names};
  });
  auto runs = Run(names, flags, input);
  if (!runs.ok()) return report.Of(runs.status());
  return runs;
}

absl::Status RunPassesAgain(const CompileInputs& inputs) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Program> program,
                      ProgramIn(inputs.model, inputs.model_file));
  HT_ASSIGN_OR_RETURN(passes::Options options,
                      passes::OptionsFor(*program, inputs.options));
  HT_ASSIGN_OR_RETURN(passes::KernelSet kernels, KernelSetFor(inputs.target));
  ProgramInput input = {std::move(program), std::move(options),
                        std::move(kernels), "", ""};
  return Run(inputs.passes, inputs.flags, &input).status();
}

}  // namespace tools
}  // namespace halftone
