#include "passes/compile.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/text/text.h"
#include "passes/pipeline.h"
#include "passes/pipelines.h"
#include "passes/report.h"

namespace halftone {
namespace passes {
namespace {

void AddPassRows(const PassPipeline& pipeline, proto::CompileReport* report) {
  for (const PassRun& run : pipeline.runs()) {
    proto::PassRow& row = *report->add_pass();
    row.set_name(run.name);
    row.set_ms(run.ms);
    row.set_changed(run.changed);
  }
}

CompiledModel MakeModel(const ModelFile& source, const Options& options,
                        std::unique_ptr<Program> program) {
  CompiledModel model;
  model.source = source;
  model.strategy = options.resolved;
  model.op_lists = options.resolved_op_lists;
  for (const auto& [path, origin] : options.origins) {
    proto::FieldOrigin& field = model.origins.emplace_back();
    field.set_path(path);
    field.set_origin(origin);
  }
  model.fingerprint = Hex64(Fingerprint(*program));
  model.program = std::move(program);
  return model;
}

}  // namespace

absl::StatusOr<CompiledModel> Compile(const ModelFile& source,
                                      const Options& options,
                                      const KernelSet& kernels,
                                      const CompileFlags& flags) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, BuildProgram(source));
  Options effective = options;
  // Without a loss there is nothing to train.
  if (program->loss.var.empty()) effective.has_optimizer = false;

  PassPipeline::Settings settings;
  settings.verify_each = flags.verify_each;
  settings.dump_dir = flags.dump_dir;
  settings.dump_after = flags.dump_after;
  PassPipeline pipeline = MakePipeline(effective, kernels, std::move(settings));
  ReportBuilder report(*program, effective);
  const Phase inserted =
      effective.has_optimizer ? Phase::kBackward : Phase::kPrecision;
  pipeline.AtEndOf(inserted, [&report](const Program& p) {
    report.AtInsertion(p);
    return absl::OkStatus();
  });
  HT_RETURN_IF_ERROR(pipeline.Run(*program));
  report.AtEnd(*program);
  AddPassRows(pipeline, &report.report());

  CompiledModel model = MakeModel(source, options, std::move(program));
  model.target = kernels.target();
  model.report = std::move(report.report());
  return model;
}

}  // namespace passes
}  // namespace halftone
