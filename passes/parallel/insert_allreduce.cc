#include "passes/parallel/insert_allreduce.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/differentiate/combine_losses.h"
#include "passes/parallel/gradients.h"
#include "passes/parallel/totals.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Reduces `local` right behind the op that makes it.
absl::StatusOr<ValueId> Reduce(Block& block, ValueId local, bool pre_scale) {
  const OpId producer = block.value(local).op();
  if (!producer.valid()) {
    return CompilerBug("gradient ", block.name(local),
                       " is not made by an op: append-backward has to assign");
  }
  OpBuilder reduction = MakeOp(block, "all_reduce", Role::kCommunicate);
  reduction.At(block.After(producer))
      .Why(FixedBySchema(block.dtype(local)))
      .In("X", {local})
      .Attr("of", std::string("gradient"))
      .Attr("gradient_scale", std::string(pre_scale ? "pre" : "none"))
      .Out("Out", absl::StrCat(block.name(local), ".reduced"));
  return BuildValue(block, reduction);
}

// Of parts of the loss that have a scaler each: on how many ranks a part sent
// something back that is not finite.
absl::StatusOr<bool> ReduceVerdicts(const Program& program, Entry& train) {
  Block& block = train.block();
  OpBuilder reduction = MakeOp(block, "all_reduce", Role::kCommunicate);
  std::vector<std::string> names;
  for (const LossPart& part : program.loss.parts) {
    const ValueId local = NotFiniteOf(block, part);
    names.push_back(NotFiniteResult(part));
    if (!local.valid() || train.FindResult(names.back()).valid()) return false;
    reduction.In("X", {local}).Out("Out", names.back());
  }
  if (names.empty()) return false;
  reduction.Name("totals.parts").Attr("of", std::string("totals"));
  HT_ASSIGN_OR_RETURN(const OpId made, reduction.Build());
  for (size_t i = 0; i < names.size(); ++i) {
    train.results().push_back({names[i], block.op(made).outputs.all()[i]});
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> InsertAllreduce::Run(Program& program) {
  bool changed = false;
  if (Entry* train = program.FindEntry(kTrainEntry)) {
    Block& block = train->block();
    std::vector<ValueId> values;
    for (const ParameterGradient& gradient : FindGradients(*train)) {
      values.push_back(gradient.value);
      if (gradient.reduced.valid()) continue;
      // Parameters may share a local gradient: then it is reduced once.
      ValueId reduced = ReducedOf(block, gradient.local);
      if (!reduced.valid()) {
        HT_ASSIGN_OR_RETURN(
            reduced, Reduce(block, gradient.local, scale_gradients_before_));
      }
      // Only the up-cast reads the reduced value: a backward op that reads the
      // local one needs this rank's.
      if (gradient.wide != gradient.local) {
        block.SetInput(block.value(gradient.wide).op(), 0, reduced);
      } else {
        values.back() = reduced;
      }
      changed = true;
    }
    SetGradients(values, train);
  }
  for (const auto& entry : program.entries()) {
    if (entry->name() != kTrainEntry && entry->name() != kEvalEntry) continue;
    HT_ASSIGN_OR_RETURN(const bool added, InsertTotals(program, *entry));
    changed |= added;
  }
  if (Entry* train = program.FindEntry(kTrainEntry)) {
    HT_ASSIGN_OR_RETURN(const bool added, ReduceVerdicts(program, *train));
    changed |= added;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
