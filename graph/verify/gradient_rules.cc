// Every gradient of a trainable parameter is summed over the ranks exactly
// once, or never where ranks average parameters instead, and every parameter
// that has one is updated.
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/parameter_updates.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

int ReductionsThatRead(const Block& block, ValueId value) {
  int count = 0;
  for (const Use& use : block.value(value).uses) {
    if (IsReduction(block.op(use.op), "gradient")) ++count;
  }
  return count;
}

// What the updates read has been reduced once.
void CheckUpdateInputs(const Block& block,
                       absl::Span<const ParameterUpdate> updates,
                       Reporter& report) {
  const int expected = GradientReductions(block.program());
  for (const ParameterUpdate& update : updates) {
    if (update.origin.reductions == expected) continue;
    report.AtOp(
        block, block.op(update.op), "slot Grad: ", block.name(update.gradient),
        ": expected ", expected == 0 ? "no" : "one",
        " all_reduce of=gradient before it, found ", update.origin.reductions);
  }
}

}  // namespace

// Of gradients without an update yet; of the others CheckUpdates.
void CheckReductions(const Entry& entry, Phase phase, Reporter& report) {
  if (phase >= Phase::kUpdate || !IsTrainEntry(entry.name())) return;
  const Block& block = entry.block();
  for (const GradientStatement& gradient : entry.gradients()) {
    const int count = OriginOf(block, gradient.value).reductions +
                      ReductionsThatRead(block, gradient.value);
    if (count != 1) {
      report.At(block.program().cell(gradient.parameter).line, "gradient ",
                block.name(gradient.value),
                ": expected one all_reduce of=gradient, found ", count);
    }
  }
}

// Of trainable parameters, one each, of their shape.
void CheckGradients(const Entry& entry, Phase, Reporter& report) {
  const Block& block = entry.block();
  const Program& program = block.program();
  std::vector<bool> known(program.num_cells());
  for (const GradientStatement& gradient : entry.gradients()) {
    if (!gradient.parameter.valid() ||
        gradient.parameter.index() >= program.num_cells()) {
      report.At(0, "gradient: there is no such cell");
      continue;
    }
    const Cell& cell = program.cell(gradient.parameter);
    if (known[cell.id.index()]) {
      report.At(cell.line, "gradient ", cell.name, ": two gradients");
    }
    known[cell.id.index()] = true;
    if (cell.kind != CellKind::kParameter || !cell.trainable) {
      report.At(cell.line, "gradient ", cell.name,
                ": expected a trainable parameter");
    }
    if (!IsLive(block, gradient.value)) {
      report.At(cell.line, "gradient ", cell.name, ": the value is gone");
    } else if (block.type(gradient.value).dims != cell.type.dims) {
      report.At(cell.line, "gradient ", cell.name, ": expected the dims of ",
                ToString(cell.type, program.symbols()), ", found ",
                block.name(gradient.value), " : ",
                ToString(block.type(gradient.value), program.symbols()));
    }
  }
}

// Every parameter that has a gradient has been updated, and every gradient
// that was reduced is read by an update.
void CheckUpdates(const Entry& entry, Phase, Reporter& report) {
  if (!IsTrainEntry(entry.name())) return;
  const Block& block = entry.block();
  const Program& program = block.program();
  const std::vector<ParameterUpdate> updates = ParameterUpdates(block);
  const int before = report.count();
  CheckUpdateInputs(block, updates, report);
  if (report.count() > before) return;
  for (const GradientStatement& gradient : entry.gradients()) {
    const Cell& cell = program.cell(gradient.parameter);
    report.At(cell.line, "parameter ", cell.name,
              ": it has a gradient, expected an update that reads it");
  }
  std::vector<bool> committed(program.num_cells());
  for (const CommitStatement& commit : entry.commits()) {
    committed[commit.cell.index()] = true;
  }
  std::vector<bool> read(block.value_limit());
  for (const ParameterUpdate& update : updates) {
    if (update.origin.reduced.valid()) {
      read[update.origin.reduced.index()] = true;
    }
    if (update.parameter.valid() && !committed[update.parameter.index()]) {
      const Cell& cell = program.cell(update.parameter);
      report.At(cell.line, "parameter ", cell.name,
                ": it is updated, expected a commit");
    }
  }
  for (OpId id : ReductionsOf(block, "gradient")) {
    const Op& op = block.op(id);
    for (ValueId reduced : op.outputs.all()) {
      if (read[reduced.index()]) continue;
      report.AtOp(block, op, "gradient ", block.name(reduced),
                  ": expected an update that reads it");
    }
  }
}

}  // namespace verify
}  // namespace halftone
