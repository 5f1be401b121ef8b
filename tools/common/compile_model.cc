#include "tools/common/compile_model.h"

#include <utility>

#include "graph/base/error.h"
#include "tools/common/bug_report.h"
#include "tools/common/model_flags.h"
#include "tools/common/planned_peak.h"
#include "tools/common/run_flags.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {
namespace {

// A run on one rank.
runtime::RunQuestion QuestionOf(const passes::Options& options,
                                const std::string& target, int threads) {
  runtime::RunQuestion question;
  question.dist = &options.strategy.dist();
  question.target = target;
  question.threads = threads > 0 ? threads : ThreadsPerRank(0, 1);
  return question;
}

}  // namespace

absl::StatusOr<CompiledModel> CompileModel(ModelFile source,
                                           const passes::Options& options,
                                           const std::string& target,
                                           const passes::CompileFlags& flags,
                                           int threads) {
  HT_ASSIGN_OR_RETURN(const passes::KernelSet kernels, KernelSetFor(target));
  passes::CompileFlags with_plans = flags;
  const runtime::RunQuestion question =
      QuestionOf(options, kernels.target().name, threads);
  with_plans.planned_peak = [&question](
                                const Program& program,
                                int64_t samples) -> absl::StatusOr<int64_t> {
    runtime::RunQuestion asked = question;
    asked.program = &program;
    asked.batch = samples;
    HT_ASSIGN_OR_RETURN(const runtime::RunMemory memory, PlannedMemory(asked));
    return memory.bytes();
  };
  with_plans.planned_rank += ThreadsText(" of ", question);
  return passes::Compile(std::move(source), options, kernels, with_plans);
}

absl::StatusOr<CompiledModel> CompileOrLeaveReproducer(
    ModelFile source, const passes::Options& options, const std::string& target,
    const passes::CompileFlags& flags, int threads,
    absl::FunctionRef<absl::StatusOr<std::string>()> model) {
  const BugReport report(
      [&, file = source.file]() -> absl::StatusOr<CompileInputs> {
        HT_ASSIGN_OR_RETURN(std::string bytes, model());
        return CompileInputs{std::move(bytes), file, options, target, flags};
      });
  auto compiled =
      CompileModel(std::move(source), options, target, flags, threads);
  if (!compiled.ok()) return report.Of(compiled.status());
  return compiled;
}

}  // namespace tools
}  // namespace halftone
