#include "passes/compile.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "passes/memory_budget.h"
#include "passes/named_passes.h"
#include "passes/pipeline.h"
#include "passes/pipelines.h"
#include "passes/precision/assign_precision.h"
#include "passes/precision/insert_casts.h"
#include "passes/report.h"
#include "passes/strategy_notes.h"

namespace halftone {
namespace passes {
namespace {

CompiledModel MakeModel(ModelFile source, const Options& options) {
  CompiledModel model;
  model.SetSource(std::move(source));
  model.strategy = options.strategy;
  model.op_lists = options.op_lists;
  for (const auto& [path, origin] : options.origins) {
    proto::FieldOrigin& field = model.origins.emplace_back();
    field.set_path(path);
    field.set_origin(origin);
  }
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

// Programs of more ops are not compiled again to compare rules.
constexpr int kMostCompared = 1000;

Options WithRule(const Options& options, const std::string& rule) {
  Options other = options;
  other.strategy.mutable_amp()->set_precision_rule(rule);
  return other;
}

bool IsCut(const proto::Amp& amp) {
  return LevelOf(amp) == Level::kO1 && RuleOf(amp) == PrecisionRule::kMinCost;
}

// The options with the other rule that follows inputs; none but for O1, nor
// where there is a cut, which no rule beats.
std::optional<Options> WithOtherRule(const Options& options) {
  const proto::Amp& amp = options.strategy.amp();
  if (LevelOf(amp) != Level::kO1 || IsCut(amp)) return std::nullopt;
  return WithRule(
      options, RuleOf(amp) == PrecisionRule::kAllLow ? "any_low" : "all_low");
}

// What another rule leaves of the casts that run on their own.
struct CastsLeft {
  int casts = 0;
  bool exact = true;  // else at most as many
};

// Of a large program before its casts: those of values, as they are inserted,
// each with that of its gradient; some will be folded.
std::optional<CastsLeft> MostCastsUnderOtherRule(const Program& program,
                                                 const Options& options,
                                                 const KernelSet& kernels) {
  const Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || train->block().num_ops() <= kMostCompared) {
    return std::nullopt;
  }
  const std::optional<Options> other = WithOtherRule(options);
  if (!other) return std::nullopt;
  const auto decisions = AssignPrecision(*other, kernels).Decide(program);
  if (!decisions.ok()) return std::nullopt;
  return CastsLeft{2 * CountCasts(program, *decisions), /*exact=*/false};
}

struct Rewritten {
  std::unique_ptr<Program> program;
  OpRows ops;
  CastRows casts;
  int standalone = 0;  // of those
  proto::CompileReport report;
  google::protobuf::RepeatedPtrField<proto::PassRow> passes;
};

absl::StatusOr<Rewritten> Rewrite(std::unique_ptr<Program> program,
                                  const Options& options,
                                  const KernelSet& kernels,
                                  const CompileFlags& flags) {
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
  std::unique_ptr<Program> inserted_alone;
  if (forward) {
    HT_ASSIGN_OR_RETURN(inserted_alone,
                        Inserted(Clone(*program), effective, kernels));
    report.AtInsertion(*inserted_alone, kTrainEntry);
  } else {
    const Phase inserted = effective.strategy.has_optimizer() && !eval
                               ? Phase::kBackward
                               : Phase::kPrecision;
    pipeline.AtEndOf(inserted, [&](const Program& p) {
      report.AtInsertion(p, flags.report_entry);
      return absl::OkStatus();
    });
  }
  if (flags.before_lowering != nullptr) {
    pipeline.AtEndOf(Phase::kUpdate, [&flags](const Program& p) {
      flags.before_lowering(p);
      return absl::OkStatus();
    });
  }
  Rewritten rewritten;
  HT_RETURN_IF_ERROR(pipeline.Run(*program));
  report.AtEnd(*program, flags.report_entry);
  rewritten.program = std::move(program);
  rewritten.ops = std::move(report.ops());
  rewritten.casts = std::move(report.casts());
  rewritten.standalone = report.standalone();
  rewritten.report = std::move(report.report());
  AddPassRows(pipeline.runs(), &rewritten.passes);
  return rewritten;
}

// The bytes that casts of their own move in a step of one sample.
int64_t StandaloneBytes(const CastRows& casts) {
  int64_t bytes = 0;
  casts.ForEach([&bytes](const proto::CastRow& cast) {
    if (cast.fate() == "standalone") bytes += BytesPerStep(cast, 1);
  });
  return bytes;
}

// The options with the rule that ops are placed by: of a cut and the other two
// the one that leaves the fewest bytes of casts. A cut counts casts as they are
// inserted; which of them kernels take is known at the end alone. Nothing but
// model and strategy decides: predict and a tap place ops as training does.
// `note`: what was found; empty where nobody asked for a cut.
absl::StatusOr<Options> WithFollowedRule(const Program& program,
                                         const Options& options,
                                         const KernelSet& kernels,
                                         std::string* note) {
  if (!IsCut(options.strategy.amp())) return options;
  int64_t fewest = -1;
  std::string followed, all;
  for (const char* rule : {"min_cost", "all_low", "any_low"}) {
    HT_ASSIGN_OR_RETURN(const Rewritten rewritten,
                        Rewrite(Clone(program), WithRule(options, rule),
                                kernels, CompileFlags()));
    const int64_t bytes = StandaloneBytes(rewritten.casts);
    absl::StrAppend(&all, all.empty() ? "" : ", ", rule, " ", WithCommas(bytes),
                    " B");
    if (fewest >= 0 && bytes >= fewest) continue;
    fewest = bytes;
    followed = rule;
  }
  *note =
      absl::StrCat("placed as by ", followed,
                   "; a step's casts of their own move, of a sample: ", all);
  return WithRule(options, followed);
}

// The options with what train.memory_budget asks for, if it is set and that is
// needed. `note`: what was found.
absl::StatusOr<Options> WithinBudget(const Program& program,
                                     const Options& options,
                                     const KernelSet& kernels,
                                     const CompileFlags& flags,
                                     std::string* note) {
  if (options.strategy.train().memory_budget().empty() ||
      !options.strategy.has_optimizer() || program.loss.var.empty() ||
      !flags.outputs.empty()) {
    return options;
  }
  if (flags.planned_peak == nullptr) {
    return CompilerBug("train.memory_budget: nobody plans");
  }
  const auto peak = [&](const Options& tried,
                        int64_t samples) -> absl::StatusOr<int64_t> {
    CompileFlags quiet;
    quiet.taps = flags.taps;
    HT_ASSIGN_OR_RETURN(const Rewritten rewritten,
                        Rewrite(Clone(program), tried, kernels, quiet));
    return flags.planned_peak(*rewritten.program, samples);
  };
  return FitToBudget(options, peak, flags.planned_rank, note);
}

// Where many casts run on their own, whether they are the rule's doing.
void CompareRules(const Options& options, const KernelSet& kernels,
                  const CompileFlags& flags, int casts,
                  std::optional<CastsLeft> left, CompiledModel* model) {
  constexpr int kMany = 64, kOneIn = 20;
  if (casts < kMany || casts < model->ops.size() / kOneIn) return;
  const std::optional<Options> other = WithOtherRule(options);
  if (!other) return;
  if (!left) {
    CompileFlags quiet;
    quiet.report_entry = flags.report_entry;
    auto program = BuildProgram(model->WholeSource());
    if (!program.ok()) return;
    const auto rewritten = Rewrite(*std::move(program), *other, kernels, quiet);
    if (!rewritten.ok()) return;
    left = CastsLeft{rewritten->standalone};
  }
  if (left->casts > casts / 4) return;
  const std::string& rule = other->strategy.amp().precision_rule();
  proto::Note& note = *model->report.add_note();
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
  HT_RETURN_IF_ERROR(CheckMemoryGlobs(program, options));
  Options effective = options;
  if (program.loss.var.empty()) effective.strategy.clear_optimizer();
  return effective;
}

absl::StatusOr<CompiledModel> Compile(ModelFile source, const Options& options,
                                      const KernelSet& kernels,
                                      const CompileFlags& flags) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, BuildProgram(source));
  CompiledModel model = MakeModel(std::move(source), options);
  const bool whole = flags.outputs.empty();
  std::optional<CastsLeft> other_rule;
  if (whole) other_rule = MostCastsUnderOtherRule(*program, options, kernels);
  std::string placed_by;
  HT_ASSIGN_OR_RETURN(const Options placed,
                      WithFollowedRule(*program, options, kernels, &placed_by));
  std::string budget_note;
  HT_ASSIGN_OR_RETURN(
      const Options fitted,
      WithinBudget(*program, placed, kernels, flags, &budget_note));
  HT_ASSIGN_OR_RETURN(Rewritten rewritten,
                      Rewrite(std::move(program), fitted, kernels, flags));
  model.SetProgram(std::move(rewritten.program));
  model.target = kernels.target().name;
  model.ops = std::move(rewritten.ops);
  model.casts = std::move(rewritten.casts);
  model.report = std::move(rewritten.report);
  model.passes = std::move(rewritten.passes);
  if (whole) {
    CompareRules(options, kernels, flags, rewritten.standalone, other_rule,
                 &model);
  }
  if (whole && !placed_by.empty()) {
    proto::Note& note = *model.report.add_note();
    note.set_code("P10");
    note.set_text(placed_by);
  }
  if (whole && !budget_note.empty()) {
    proto::Note& note = *model.report.add_note();
    note.set_code("M2");
    note.set_text(budget_note);
  }
  return model;
}

}  // namespace passes
}  // namespace halftone
