// Every gradient of a trainable parameter is summed over the ranks exactly
// once, and every parameter that has one is updated.
#include "absl/container/flat_hash_set.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

bool IsReduction(const Op& op) {
  return op.schema->name() == "all_reduce" &&
         AttrAs<std::string>(op, "of") == "gradient";
}

// Ops that hand one gradient on under another dtype, scale or shape.
bool HandsOn(const Op& op) {
  const std::string& name = op.schema->name();
  return name == "cast" || name == "unscale" || name == "clip_by_factor" ||
         op.schema->view();
}

// The reductions between the op that made the gradient and `value`.
int ReductionsBefore(const Block& block, ValueId value) {
  int count = 0;
  for (OpId id = block.value(value).op(); id.valid();
       id = block.value(value).op()) {
    const Op& op = block.op(id);
    const int position = block.value(value).result;
    if (IsReduction(op)) {
      ++count;
      value = op.inputs.all()[position];
    } else if (HandsOn(op)) {
      value = op.inputs.all()[0];
    } else {
      break;
    }
  }
  return count;
}

int ReductionsThatRead(const Block& block, ValueId value) {
  int count = 0;
  for (const Use& use : block.value(value).uses) {
    if (IsReduction(block.op(use.op))) ++count;
  }
  return count;
}

// The gradient of a trainable parameter, by the name that backward gives it;
// invalid if there is none (the loss does not depend on the parameter).
ValueId GradientOf(const Block& block, const Cell& cell) {
  if (cell.kind != CellKind::kParameter || !cell.trainable) return ValueId();
  return block.FindValue(absl::StrCat(cell.name, ".grad"));
}

void CheckBeforeUpdate(const Entry& entry, Reporter& report) {
  const Block& block = entry.block();
  const Program& program = block.program();
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    const ValueId gradient = GradientOf(block, cell);
    if (!gradient.valid()) continue;
    const int count =
        ReductionsBefore(block, gradient) + ReductionsThatRead(block, gradient);
    if (count != 1) {
      report.At(cell.line, "gradient ", block.name(gradient),
                ": expected one all_reduce of=gradient, found ", count);
    }
  }
}

// What the updates read has been reduced once: the ops whose results are
// committed.
void CheckUpdateInputs(const Entry& entry, Reporter& report) {
  const Block& block = entry.block();
  absl::flat_hash_set<OpId> seen;
  for (const CommitStatement& commit : entry.commits()) {
    const OpId id = block.value(commit.value).op();
    if (!id.valid() || !seen.insert(id).second) continue;
    const Op& op = block.op(id);
    if (!op.schema->guarded()) continue;
    const int grad = op.schema->FindInput("Grad");
    const int param = op.schema->FindInput("Param");
    if (grad < 0 || param < 0) continue;
    for (ValueId gradient : op.inputs.slot(grad)) {
      const int count = ReductionsBefore(block, gradient);
      if (count != 1) {
        report.AtOp(block, op, "slot Grad: ", block.name(gradient),
                    ": expected one all_reduce of=gradient before it, found ",
                    count);
      }
    }
  }
}

}  // namespace

void CheckReductions(const Entry& entry, Phase phase, Reporter& report) {
  if (entry.name() != kTrainEntry) return;
  if (phase < Phase::kUpdate) {
    CheckBeforeUpdate(entry, report);
  } else {
    CheckUpdateInputs(entry, report);
  }
}

void CheckUpdates(const Entry& entry, Phase, Reporter& report) {
  if (entry.name() != kTrainEntry) return;
  const Block& block = entry.block();
  const Program& program = block.program();
  std::vector<bool> committed(program.num_cells());
  for (const CommitStatement& commit : entry.commits()) {
    committed[commit.cell.index()] = true;
  }
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (GradientOf(block, cell).valid() && !committed[i]) {
      report.At(cell.line, "parameter ", cell.name,
                ": it has a gradient, expected a commit");
    }
  }
}

}  // namespace verify
}  // namespace halftone
