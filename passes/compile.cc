#include "passes/compile.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "passes/named_passes.h"
#include "passes/pipeline.h"
#include "passes/pipelines.h"
#include "passes/report.h"
#include "passes/strategy_notes.h"

namespace halftone {
namespace passes {
namespace {

CompiledModel MakeModel(ModelFile source, const Options& options,
                        std::unique_ptr<Program> program) {
  CompiledModel model;
  model.source = std::move(source);
  model.strategy = options.strategy;
  model.op_lists = options.op_lists;
  for (const auto& [path, origin] : options.origins) {
    proto::FieldOrigin& field = model.origins.emplace_back();
    field.set_path(path);
    field.set_origin(origin);
  }
  model.SetProgram(std::move(program));
  return model;
}

// A forward program with its casts, before anything is derived from it.
absl::StatusOr<std::unique_ptr<Program>> Inserted(
    std::unique_ptr<Program> program, const Options& options,
    const KernelSet& kernels) {
  for (const char* name : {"assign-precision", "insert-casts"}) {
    HT_ASSIGN_OR_RETURN(const auto pass, MakePass(name, {options, kernels}));
    HT_RETURN_IF_ERROR(pass->Run(*program).status());
  }
  return {std::move(program)};
}

struct Rewritten {
  std::unique_ptr<Program> program;
  proto::CompileReport report;
  google::protobuf::RepeatedPtrField<proto::PassRow> passes;
};

absl::StatusOr<Rewritten> Rewrite(const ModelFile& source,
                                  const Options& options,
                                  const KernelSet& kernels,
                                  const CompileFlags& flags) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, BuildProgram(source));
  HT_ASSIGN_OR_RETURN(Options effective, OptionsFor(*program, options));
  if (!flags.outputs.empty()) effective.strategy.clear_optimizer();
  PassPipeline::Settings settings;
  settings.verify_each = flags.verify_each;
  settings.dump_dir = flags.dump_dir;
  settings.dump_after = flags.dump_after;
  PassPipeline pipeline = MakePipeline(
      {effective, kernels, flags.taps, flags.outputs}, std::move(settings));
  ReportBuilder report(*program, options);
  const bool eval = flags.report_entry == kEvalEntry;
  const bool forward =
      flags.report_entry == kTrainEntry && !effective.strategy.has_optimizer();
  if (forward) {
    HT_ASSIGN_OR_RETURN(const auto inserted,
                        Inserted(Clone(*program), effective, kernels));
    report.AtInsertion(*inserted, kTrainEntry);
  } else {
    const Phase inserted = effective.strategy.has_optimizer() && !eval
                               ? Phase::kBackward
                               : Phase::kPrecision;
    pipeline.AtEndOf(inserted, [&](const Program& p) {
      report.AtInsertion(p, flags.report_entry);
      return absl::OkStatus();
    });
  }
  HT_RETURN_IF_ERROR(pipeline.Run(*program));
  report.AtEnd(*program, flags.report_entry);
  Rewritten rewritten{std::move(program), std::move(report.report()), {}};
  AddPassRows(pipeline.runs(), &rewritten.passes);
  return rewritten;
}

int Standalone(const proto::CompileReport& report) {
  return static_cast<int>(std::count_if(
      report.cast().begin(), report.cast().end(),
      [](const proto::CastRow& cast) { return cast.fate() == "standalone"; }));
}

// Of values that are no cells', in the forward part.
int CastsOfValues(const Program& program) {
  const Entry* entry = program.FindEntry(kTrainEntry);
  int casts = 0;
  if (entry == nullptr) return casts;
  const Block& block = entry->block();
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    casts +=
        op.schema->name() == "cast" && !block.value(op.in(0)).cell().valid();
  }
  return casts;
}

// What another rule leaves of the casts that run on their own.
struct CastsLeft {
  int casts = 0;
  bool exact = true;  // else at most as many
};

// Small programs are compiled under it; of others the casts of values are
// counted as they are inserted, each with that of its gradient: some will be
// folded.
absl::StatusOr<CastsLeft> CastsUnder(const Options& options,
                                     const ModelFile& source,
                                     const KernelSet& kernels,
                                     absl::string_view entry) {
  constexpr int kSmall = 1000;
  if (source.model.op_size() <= kSmall) {
    CompileFlags quiet;
    quiet.report_entry = std::string(entry);
    HT_ASSIGN_OR_RETURN(const Rewritten rewritten,
                        Rewrite(source, options, kernels, quiet));
    return CastsLeft{Standalone(rewritten.report)};
  }
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, BuildProgram(source));
  const int before = CastsOfValues(*program);
  HT_ASSIGN_OR_RETURN(program, Inserted(std::move(program), options, kernels));
  return CastsLeft{2 * (CastsOfValues(*program) - before), /*exact=*/false};
}

// Where many casts run on their own, whether they are the rule's doing.
void CompareRules(const ModelFile& source, const Options& options,
                  const KernelSet& kernels, const CompileFlags& flags,
                  proto::CompileReport* report) {
  constexpr int kMany = 64, kOneIn = 20;
  const int casts = Standalone(*report);
  if (LevelOf(options.strategy.amp()) != Level::kO1 || casts < kMany ||
      casts < report->op_size() / kOneIn) {
    return;
  }
  const bool all_low = RuleOf(options.strategy.amp()) == PrecisionRule::kAllLow;
  Options other = options;
  const char* const rule = all_low ? "any_low" : "all_low";
  other.strategy.mutable_amp()->set_precision_rule(rule);
  const auto left = CastsUnder(other, source, kernels, flags.report_entry);
  if (!left.ok() || left->casts > casts / 4) return;
  proto::Note& note = *report->add_note();
  note.set_code("P7");
  note.set_text(absl::StrCat(
      WithCommas(casts), " casts run on their own; precision_rule ", rule,
      " would leave ", left->exact ? "" : "at most ", WithCommas(left->casts),
      ": --set amp.precision_rule=", rule));
}

}  // namespace

absl::StatusOr<Options> OptionsFor(const Program& program,
                                   const Options& options) {
  HT_RETURN_IF_ERROR(CheckGroups(program, options));
  Options effective = options;
  if (program.loss.var.empty()) effective.strategy.clear_optimizer();
  return effective;
}

absl::StatusOr<CompiledModel> Compile(ModelFile source, const Options& options,
                                      const KernelSet& kernels,
                                      const CompileFlags& flags) {
  HT_ASSIGN_OR_RETURN(Rewritten rewritten,
                      Rewrite(source, options, kernels, flags));
  CompiledModel model =
      MakeModel(std::move(source), options, std::move(rewritten.program));
  model.target = kernels.target().name;
  model.report = std::move(rewritten.report);
  model.passes = std::move(rewritten.passes);
  if (flags.outputs.empty()) {
    CompareRules(model.source, options, kernels, flags, &model.report);
  }
  return model;
}

}  // namespace passes
}  // namespace halftone
