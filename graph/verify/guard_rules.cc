// The proof that a step is all or nothing: in `train` a cell of class applied
// takes a new value only through select(found_inf, old, new).
//
// An op whose schema is Guarded hands on, where FoundInf holds, the value of
// the input that its output may alias. So a commit is safe if following those
// inputs back from the committed value leads to the cell itself, through
// guarded ops alone that all read the FoundInf of the entry's one
// check_finite. A derived cell is computed from its parameter's new value by
// the same guarded op: where that is the old one, so is the derived. Shards
// count as what they are of: where each rank keeps its own, the whole is the
// old one. Where ranks check shards, the verdict is that of combine_checks.
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/parameter_updates.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

class GuardChecker {
 public:
  GuardChecker(const Entry& entry, Reporter& report)
      : entry_(entry), block_(entry.block()), report_(report) {}

  void Run();

 private:
  // The FoundInf of the check_finite that is the step's verdict; false if it
  // is not clear which that is.
  bool FindVerdict();
  void CheckCommit(const Cell& cell, ValueId value);
  // The output's old value: the input that it may alias; invalid if none.
  ValueId OldOf(const Op& op, int slot, int member) const;
  // Whether the op's output for the parameter is what the parameter commits.
  bool UpdatesOwner(const Cell& derived, const Op& op, int member) const;
  template <typename... Parts>
  void Refuse(const Cell& cell, const Parts&... parts) {
    report_.At(cell.line, "commit ", cell.name, ": ", parts...);
  }

  const Entry& entry_;
  const Block& block_;
  Reporter& report_;
  ValueId found_inf_;
  std::vector<ValueId> committed_;  // by cell
};

bool GuardChecker::FindVerdict() {
  const OpSchema* check_finite = Ops().Find("check_finite");
  const int count = block_.CountOf(check_finite);
  // It stands near the end, behind those of parts of the loss.
  for (OpId id = block_.last(); id.valid() && count > 0;
       id = block_.previous(id)) {
    const Op& op = block_.op(id);
    if (op.schema != check_finite) continue;
    found_inf_ = op.out(op.schema->FindOutput("FoundInf"));
    const ValueId first_bad = op.out(op.schema->FindOutput("FirstBad"));
    for (const Use& use : block_.value(first_bad).uses) {
      const Op& combined = block_.op(use.op);
      if (combined.schema->name() != "combine_checks") continue;
      found_inf_ = combined.out(combined.schema->FindOutput("FoundInf"));
    }
    break;
  }
  const ValueId verdict = entry_.FindResult(kFoundInf);
  const bool known = count == 1 || (count > 1 && verdict == found_inf_);
  if (!known) {
    report_.At(0,
               "cells of class applied are committed: expected one "
               "check_finite, found ",
               count);
  }
  return known;
}

ValueId GuardChecker::OldOf(const Op& op, int slot, int member) const {
  const int input = op.schema->outputs()[slot].may_alias - 1;
  if (input < 0) return ValueId();
  const auto values = op.inputs.slot(input);
  return member < static_cast<int>(values.size()) ? values[member] : ValueId();
}

bool GuardChecker::UpdatesOwner(const Cell& derived, const Op& op,
                                int member) const {
  ValueId owner = committed_[derived.of.index()];
  if (owner.valid()) owner = WholeOrShard(block_, owner);
  if (!owner.valid() || block_.value(owner).op() != op.id) return false;
  const int position = block_.value(owner).result;
  return position - op.outputs.begin(op.outputs.SlotOf(position)) == member;
}

void GuardChecker::CheckCommit(const Cell& cell, ValueId value) {
  // Definitions come before uses, so this ends.
  while (block_.value(value = WholeOrShard(block_, value)).cell() != cell.id) {
    const OpId id = block_.value(value).op();
    if (!id.valid() || !block_.op(id).schema->guarded()) {
      Refuse(cell, "expected the result of a guarded op, found ",
             block_.name(value));
      return;
    }
    const Op& op = block_.op(id);
    if (op.in(op.schema->FindInput("FoundInf")) != found_inf_) {
      Refuse(cell, "expected ", block_.name(op),
             " to read the FoundInf of the entry's check_finite");
      return;
    }
    const int position = block_.value(value).result;
    const int slot = op.outputs.SlotOf(position);
    const int member = position - op.outputs.begin(slot);
    const ValueId old = OldOf(op, slot, member);
    if (!old.valid()) {
      if (cell.kind == CellKind::kDerived && UpdatesOwner(cell, op, member)) {
        return;
      }
      Refuse(cell, "slot ", op.schema->outputs()[slot].name, " of ",
             block_.name(op), " does not keep the cell's old value");
      return;
    }
    value = old;
  }
}

void GuardChecker::Run() {
  const Program& program = block_.program();
  const auto applied = [&program](const CommitStatement& commit) {
    return program.cell(commit.cell).commit == Commit::kApplied;
  };
  committed_.resize(program.num_cells());
  bool any = false;
  for (const CommitStatement& commit : entry_.commits()) {
    committed_[commit.cell.index()] = commit.value;
    any = any || applied(commit);
  }
  if (!any || !FindVerdict()) return;
  for (const CommitStatement& commit : entry_.commits()) {
    if (applied(commit)) {
      CheckCommit(program.cell(commit.cell), commit.value);
    }
  }
}

}  // namespace

void CheckGuards(const Entry& entry, Phase, Reporter& report) {
  if (IsTrainEntry(entry.name())) GuardChecker(entry, report).Run();
}

}  // namespace verify
}  // namespace halftone
