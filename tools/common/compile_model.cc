#include "tools/common/compile_model.h"

#include <utility>

#include "graph/base/error.h"
#include "tools/common/bug_report.h"
#include "tools/common/model_flags.h"
#include "tools/common/planned_peak.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {
namespace {

// On one rank.
absl::StatusOr<int64_t> PeakOfRun(const Program& program,
                                  const passes::Options& options,
                                  const std::string& target, int64_t samples) {
  runtime::RunQuestion question;
  question.program = &program;
  question.dist = &options.strategy.dist();
  question.target = target;
  question.batch = samples;
  HT_ASSIGN_OR_RETURN(const runtime::RunMemory memory, PlannedMemory(question));
  return memory.bytes();
}

}  // namespace

absl::StatusOr<CompiledModel> CompileModel(ModelFile source,
                                           const passes::Options& options,
                                           const std::string& target,
                                           const passes::CompileFlags& flags) {
  HT_ASSIGN_OR_RETURN(const passes::KernelSet kernels, KernelSetFor(target));
  passes::CompileFlags with_plans = flags;
  with_plans.planned_peak = [&](const Program& program, int64_t samples) {
    return PeakOfRun(program, options, kernels.target().name, samples);
  };
  return passes::Compile(std::move(source), options, kernels, with_plans);
}

absl::StatusOr<CompiledModel> CompileOrLeaveReproducer(
    ModelFile source, const passes::Options& options, const std::string& target,
    const passes::CompileFlags& flags,
    absl::FunctionRef<absl::StatusOr<std::string>()> model) {
  const BugReport report(
      [&, file = source.file]() -> absl::StatusOr<CompileInputs> {
        HT_ASSIGN_OR_RETURN(std::string bytes, model());
        return CompileInputs{std::move(bytes), file, options, target, flags};
      });
  auto compiled = CompileModel(std::move(source), options, target, flags);
  if (!compiled.ok()) return report.Of(compiled.status());
  return compiled;
}

}  // namespace tools
}  // namespace halftone
