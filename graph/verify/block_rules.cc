// Names, definitions and use lists of values; the list of ops.
#include "graph/base/dtype.h"
#include "graph/verify/limits.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

void CheckBodyResults(BlockScope& scope) {
  for (ValueId result : scope.block.body_results()) {
    if (!IsLive(scope.block, result)) {
      scope.report.At(0, "a result is not a live value");
    }
  }
  if (scope.entry != nullptr && !scope.block.body_results().empty()) {
    scope.report.At(0, "expected body results in fusions alone");
  }
}

// The name of a cell or constant denotes it, and nothing else, in an entry.
// Their values, which no op defines, are looked at here where not all are.
void CheckCellsAndConstants(BlockScope& scope) {
  if (scope.entry == nullptr) return;
  const auto check = [&scope](NameId name, Definition expected) {
    const ValueId value = scope.block.FindValue(name);
    if (!value.valid()) return;
    if (scope.block.value(value).definition != expected) {
      scope.report.At(0, "value ", scope.program.name_of(name),
                      ": expected a name that no cell or constant has");
    } else if (scope.since > 0 && IsLive(scope.block, value)) {
      CheckValue(scope, scope.block.value(value));
    }
  };
  const Program& program = scope.program;
  for (int i = 0; i < program.num_cells(); ++i) {
    check(program.cell_name(CellId(i)), Definition::kCell);
  }
  for (int i = 0; i < program.num_constants(); ++i) {
    check(program.constant_name(ConstantId(i)), Definition::kConstant);
  }
}

void CheckNewType(BlockScope& scope, const Value& value) {
  const TensorType& type = scope.program.type(value.type);
  const std::string wrong = BadDims(type);
  if (type.dtype != DType::kInvalid && wrong.empty()) {
    scope.memo.SetGood(value.type);
  } else {
    scope.report.At(0, "value ", scope.block.name(value.id), ": ",
                    wrong.empty() ? "it has no dtype" : wrong, ", found ",
                    scope.Print(type));
  }
}

void ExpectSame(BlockScope& scope, const Value& value, absl::string_view what,
                absl::string_view name, const TensorType& type) {
  const absl::string_view found = scope.block.name(value.id);
  if (name != found) {
    scope.report.At(0, "value ", found, ": expected the name of its ", what,
                    ", ", name);
  }
  const TensorType& stored = scope.program.type(value.type);
  if (stored != type) {
    scope.report.At(0, "value ", found, ": expected the type of its ", what,
                    ", ", scope.Print(type), ", found ", scope.Print(stored));
  }
}

// Back references: the definition knows the value as the value knows it.
void CheckDefinition(BlockScope& scope, const Value& value) {
  const Program& program = scope.program;
  bool sound = true;
  switch (value.definition) {
    case Definition::kFeed:
      break;
    case Definition::kConstant:
      sound = value.index >= 0 && value.index < program.num_constants();
      if (sound) {
        const Constant& constant = program.constant(ConstantId(value.index));
        ExpectSame(scope, value, "constant", constant.name, constant.type);
      }
      break;
    case Definition::kCell:
      sound = value.index >= 0 && value.index < program.num_cells();
      if (sound) {
        const Cell& cell = program.cell(CellId(value.index));
        ExpectSame(scope, value, "cell", cell.name, cell.type);
      }
      break;
    case Definition::kOp: {
      sound = value.index >= 0 && value.index < scope.block.op_limit();
      if (!sound) break;
      const Op& op = scope.block.op(OpId(value.index));
      const auto outputs = op.outputs.all();
      sound = !op.erased && value.result >= 0 &&
              value.result < static_cast<int>(outputs.size()) &&
              outputs[value.result] == value.id;
      break;
    }
  }
  if (!sound) {
    scope.report.At(0, "value ", scope.block.name(value.id),
                    ": its definition does not know it");
  }
}

void CheckUses(BlockScope& scope, const Value& value) {
  const Block& block = scope.block;
  // Whether the reader reads the value there and knows this very use.
  const auto is_sound = [&](const Use& use, int index) {
    if (!use.op.valid() || use.op.index() >= block.op_limit()) return false;
    const Op& op = block.op(use.op);
    const auto inputs = op.inputs.all();
    return !op.erased && use.position >= 0 &&
           use.position < static_cast<int>(inputs.size()) &&
           inputs[use.position] == value.id &&
           block.use_indices(use.op)[use.position] == index;
  };
  for (int i = 0; i < static_cast<int>(value.uses.size()); ++i) {
    if (!is_sound(value.uses[i], i)) {
      scope.report.At(0, "value ", block.name(value.id),
                      ": a use does not read it");
    }
  }
}

}  // namespace

void CheckNewName(BlockScope& scope, NameId name, absl::string_view whose,
                  int line) {
  const std::string wrong = BadName(scope.program.name_of(name));
  if (!wrong.empty()) scope.report.At(line, whose, " name ", wrong);
}

void ReportUses(BlockScope& scope) {
  for (int i = 0; i < scope.block.value_limit(); ++i) {
    const Value& value = scope.block.value(ValueId(i));
    if (!value.erased) CheckUses(scope, value);
  }
}

void CheckStructure(BlockScope& scope) {
  CheckBodyResults(scope);
  CheckCellsAndConstants(scope);
}

void CheckSplit(BlockScope& scope) {
  if (scope.phase < Phase::kLowered) return;
  for (const auto& [schema, count] : scope.block.counts()) {
    if (count == 0 || !schema->split_only()) continue;
    for (OpId id : scope.block.OpsOf(schema)) {
      scope.report.AtOp(scope.block, scope.block.op(id),
                        "it has no kernel: expected it to be split by now");
    }
  }
}

void CheckNameAndType(BlockScope& scope, const Value& value) {
  CheckName(scope, value.name, "a value's", 0);
  if (scope.since == 0 && scope.block.FindValue(value.name) != value.id) {
    scope.report.At(0, "two values are called ", scope.block.name(value.id));
  }
  if (!scope.memo.IsGood(value.type)) CheckNewType(scope, value);
}

void CheckValue(BlockScope& scope, const Value& value) {
  CheckNameAndType(scope, value);
  CheckDefinition(scope, value);
  scope.uses += static_cast<int64_t>(value.uses.size());
}

}  // namespace verify
}  // namespace halftone
