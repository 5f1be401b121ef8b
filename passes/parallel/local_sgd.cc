#include "passes/parallel/local_sgd.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "passes/parallel/average_entry.h"
#include "passes/parallel/combine_verdicts.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Train of a rank that goes on by itself.
class Localizer {
 public:
  Localizer(Program& program, Entry& train)
      : program_(program), train_(train), block_(train.block()), held_(train) {}

  absl::Status Run();
  // When ranks average follows from the loss.
  absl::Status AdaptSteps(const proto::AdaptiveLocalSgd& adaptive);

 private:
  // Gradients are this rank's.
  void DropReductions();
  // Gradients are means over this rank's samples.
  absl::Status ScaleByOwnCount();
  // Running statistics take this rank's batch.
  absl::Status KeepStatistics();
  absl::Status KeepStatistic(OpId combine, int slot, int member);
  // `own`, or what the update has if the batch of this rank is empty.
  absl::StatusOr<ValueId> OwnOrOld(OpId update, int position, ValueId own,
                                   ValueId count);
  void KeepSlots();

  Program& program_;
  Entry& train_;
  Block& block_;
  HeldValues held_;
};

void Localizer::DropReductions() {
  for (OpId id : OpsOfType(block_, "all_reduce")) {
    const Op& op = block_.op(id);
    if (!IsReduction(op, "gradient")) continue;
    for (size_t i = 0; i < op.inputs.all().size(); ++i) {
      ReplaceValue(block_, op.outputs.all()[i], op.inputs.all()[i], held_);
    }
    block_.EraseOp(id);
  }
}

absl::Status Localizer::ScaleByOwnCount() {
  for (OpId id : OpsOfType(block_, "gradient_inv_scale")) {
    const int slot = block_.op(id).schema->FindInput("Count");
    const ValueId all = block_.op(id).in(slot);
    const Op* const totals = DefinedBy(block_, all, "all_reduce");
    if (totals == nullptr) {
      return CompilerBug(block_.name(all),
                         " is no total: insert-allreduce must run before");
    }
    const ValueId own = totals->inputs.all()[block_.value(all).result];
    block_.SetInput(id, block_.op(id).inputs.begin(slot), own);
    Op& op = block_.mutable_op(id);
    AttrList attrs;
    SetAttr(*op.schema, "gradient_scale", std::string("post"), &attrs);
    op.attrs = program_.Intern(std::move(attrs));
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Localizer::OwnOrOld(OpId update, int position,
                                            ValueId own, ValueId count) {
  const Op& op = block_.op(update);
  const bool mean =
      op.inputs.SlotOf(position) == op.schema->FindInput("BatchMean");
  const ValueId old = InputOf(op, mean ? "OldMean" : "OldVariance");
  OpBuilder any = MakeOp(block_, "logical_or", Role::kOptimize);
  any.At(Block::Before(update))
      .In("X", count)
      .In("Y", count)
      .Out("Out", absl::StrCat(block_.name(count), ".any"));
  HT_ASSIGN_OR_RETURN(const ValueId counted, BuildValue(block_, any));
  OpBuilder where = MakeOp(block_, "where", Role::kOptimize);
  where.At(Block::Before(update))
      .In("Condition", counted)
      .In("X", own)
      .In("Y", old)
      .Out("Out", absl::StrCat(block_.name(own), ".counted"));
  return BuildValue(block_, where);
}

absl::Status Localizer::KeepStatistic(OpId combine, int slot, int member) {
  const Op& op = block_.op(combine);
  const ValueId own = op.inputs.slot(slot)[member];
  const ValueId count = op.inputs.slot(op.schema->FindInput("Count"))[member];
  const ValueId all = op.outputs.slot(slot)[member];
  while (!block_.value(all).uses.empty()) {
    const Use use = block_.value(all).uses.back();
    ValueId read = own;
    if (block_.op(use.op).schema->name() == "running_stats") {
      HT_ASSIGN_OR_RETURN(read, OwnOrOld(use.op, use.position, own, count));
    }
    block_.SetInput(use.op, use.position, read);
  }
  return absl::OkStatus();
}

absl::Status Localizer::KeepStatistics() {
  for (OpId id : OpsOfType(block_, "combine_stats")) {
    for (const char* slot : {"Mean", "Variance"}) {
      const int s = block_.op(id).schema->FindInput(slot);
      const int members = static_cast<int>(block_.op(id).inputs.slot(s).size());
      for (int i = 0; i < members; ++i) {
        HT_RETURN_IF_ERROR(KeepStatistic(id, s, i));
      }
    }
    if (!IsDead(block_, block_.op(id), held_)) {
      return CompilerBug(block_.name(block_.op(id)),
                         ": expected none but running statistics to read it");
    }
    block_.EraseOp(id);
  }
  return absl::OkStatus();
}

void Localizer::KeepSlots() {
  for (const CommitStatement& commit : train_.commits()) {
    Cell& cell = program_.cell(commit.cell);
    if (cell.kind == CellKind::kSlot) cell.spread = Spread::kPerRank;
  }
}

absl::Status Localizer::AdaptSteps(const proto::AdaptiveLocalSgd& adaptive) {
  HT_ASSIGN_OR_RETURN(const ValueId attempted,
                      WellKnownValue(&block_, kAttempted));
  OpBuilder adapt = MakeOp(block_, "adapt_local_steps", Role::kOptimize);
  adapt.Name(kLocalSteps)
      .In("Attempted", attempted)
      .In("LossSum", train_.FindResult(kLossSum))
      .In("Count", train_.FindResult(kCount))
      .In("LearningRate", train_.FindResult(kLearningRate))
      .Attr("init_k_steps", adaptive.init_k_steps())
      .Attr("begin_step", adaptive.begin_step());
  static constexpr const char* kSlots[] = {"AveragedAt", "LocalSteps",
                                           "FirstLoss", "FirstRate"};
  static constexpr const char* kCells[] = {kAveragedAt, kLocalSteps, kFirstLoss,
                                           kFirstRate};
  std::vector<CellId> cells;
  for (int i = 0; i < 4; ++i) {
    HT_ASSIGN_OR_RETURN(const ValueId cell, WellKnownValue(&block_, kCells[i]));
    cells.push_back(block_.value(cell).cell());
    adapt.In(kSlots[i], cell)
        .Out(absl::StrCat(kSlots[i], "Out"),
             absl::StrCat(kCells[i], kNextSuffix));
  }
  program_.cell(cells[1]).init.a = static_cast<double>(adaptive.init_k_steps());
  HT_ASSIGN_OR_RETURN(const OpId made, adapt.Build());
  for (int i = 0; i < 4; ++i) {
    train_.commits().push_back({cells[i], block_.op(made).out(i)});
  }
  train_.results().push_back(
      {absl::StrCat(kLocalSteps, kNextSuffix), block_.op(made).out(1)});
  return absl::OkStatus();
}

absl::Status Localizer::Run() {
  DropReductions();
  HT_RETURN_IF_ERROR(ScaleByOwnCount());
  HT_RETURN_IF_ERROR(KeepStatistics());
  HT_RETURN_IF_ERROR(CombineChecks(train_, Norms::kOwn, held_));
  KeepSlots();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> LocalSgd::Run(Program& program) {
  Entry* const train = program.FindEntry(kTrainEntry);
  if (train == nullptr || program.FindEntry(kAverageEntry) != nullptr ||
      CountOfType(train->block(), "check_finite") == 0) {
    return false;
  }
  Localizer localizer(program, *train);
  HT_RETURN_IF_ERROR(localizer.Run());
  if (dist_.has_adaptive_localsgd()) {
    HT_RETURN_IF_ERROR(localizer.AdaptSteps(dist_.adaptive_localsgd()));
  }
  HT_RETURN_IF_ERROR(AddAverageEntry(program, *train, dist_));
  return true;
}

}  // namespace passes
}  // namespace halftone
