// Ops: schema, order, uses, types, reasons, bodies.

#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/type_key.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

void CheckOpName(BlockScope& scope, const Op& op) {
  CheckName(scope, op.name, "an op's", op.line);
  if (scope.since == 0 && scope.block.FindOp(op.name) != op.id) {
    scope.report.At(op.line, "two ops are called ", scope.block.name(op));
  }
}

bool CheckSchema(BlockScope& scope, const Op& op) {
  if (op.schema == nullptr) {
    scope.report.AtOp(scope.block, op, "it has no schema");
    return false;
  }
  const int inputs = static_cast<int>(op.schema->inputs().size());
  const int outputs = static_cast<int>(op.schema->outputs().size());
  if (op.inputs.slots() != inputs || op.outputs.slots() != outputs) {
    scope.report.AtOp(scope.block, op, "expected ", inputs, " input and ",
                      outputs, " output slots, found ", op.inputs.slots(),
                      " and ", op.outputs.slots());
    return false;
  }
  return true;
}

// Attributes: known ones, in order, each once. Kinds are CheckTypes's.
bool CheckAttrs(BlockScope& scope, const Op& op) {
  int previous = -1;
  for (const auto& [index, value] : op.attrs) {
    if (index <= previous ||
        index >= static_cast<int>(op.schema->attrs().size())) {
      scope.report.AtOp(scope.block, op, "attribute ", index,
                        ": expected known ones in order, each once");
      return false;
    }
    previous = index;
  }
  return true;
}

bool CheckOutputs(BlockScope& scope, const Op& op) {
  const auto outputs = op.outputs.all();
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    const bool known = IsLive(scope.block, outputs[i]) &&
                       scope.block.value(outputs[i]).op() == op.id &&
                       scope.block.value(outputs[i]).result == i;
    if (!known) {
      scope.report.AtOp(scope.block, op, "slot ",
                        op.schema->outputs()[op.outputs.SlotOf(i)].name,
                        ": the value has another definition");
      return false;
    }
  }
  return true;
}

// Single assignment, and definition before use: no type is inferred from a
// value that was not looked at.
bool CheckOrder(BlockScope& scope, const Op& op) {
  const int before = scope.report.count();
  const auto inputs = op.inputs.all();
  scope.reads += static_cast<int64_t>(inputs.size());
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const auto slot = [&]() -> const std::string& {
      return op.schema->inputs()[op.inputs.SlotOf(i)].name;
    };
    if (!IsLive(scope.block, inputs[i])) {
      scope.report.AtOp(scope.block, op, "slot ", slot(),
                        ": it reads a value that is gone");
      return false;
    }
    const Value& value = scope.block.value(inputs[i]);
    if (value.op().valid() && !scope.defined[value.op().index()]) {
      scope.report.AtOp(scope.block, op, "slot ", slot(), ": it reads ",
                        scope.block.name(value.id), " before its definition");
    }
    if (scope.since > 0) continue;
    const Block::UseIndices& indices = scope.block.use_indices(op.id);
    const int use = i < static_cast<int>(indices.size()) ? indices[i] : -1;
    if (use < 0 || use >= static_cast<int>(value.uses.size()) ||
        !(value.uses[use] == Use{op.id, i})) {
      scope.report.AtOp(scope.block, op, "slot ", slot(), ": the uses of ",
                        scope.block.name(value.id), " leave it out");
    }
  }
  return scope.report.count() == before;
}

// The members of a contiguous slot lie side by side, so each lies once.
void CheckContiguous(BlockScope& scope, const Op& op) {
  for (int s = 0; s < op.inputs.slots(); ++s) {
    const Slot& slot = op.schema->inputs()[s];
    if (!slot.contiguous() || !op.inputs.has(s)) continue;
    if (scope.member_of.empty()) {
      scope.member_of.resize(scope.block.value_limit());
    }
    for (ValueId value : op.inputs.slot(s)) {
      OpId& member_of = scope.member_of[value.index()];
      if (member_of == op.id) {
        scope.report.AtOp(scope.block, op, "slot ", slot.name, ": ",
                          scope.block.name(value), " is a member twice");
      }
      member_of = op.id;
    }
  }
}

// A fusion's body is closed: what it reads are its arguments, which are the
// op's inputs; what it returns are the op's outputs.
void CheckBodyTypes(BlockScope& scope, const Op& op, absl::string_view what,
                    const std::vector<ValueId>& inside,
                    absl::Span<const ValueId> outside) {
  if (inside.size() != outside.size()) {
    scope.report.AtOp(scope.block, op, "body: expected ", outside.size(), " ",
                      what, ", found ", inside.size());
    return;
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    if (op.body->type_id(inside[i]) == scope.block.type_id(outside[i])) {
      continue;
    }
    scope.report.AtOp(scope.block, op, "body: ", what, ": expected ",
                      scope.Print(scope.block.type(outside[i])), ", found ",
                      scope.Print(op.body->type(inside[i])));
  }
}

// A kernel takes the body for what its pattern says.
void CheckPattern(BlockScope& scope, const Op& op) {
  const std::string& name = AttrAs<std::string>(op, "pattern");
  const FusionPattern* pattern = FindFusionPattern(name);
  if (pattern == nullptr) {
    std::vector<std::string> names;
    for (const FusionPattern& each : FusionPatterns()) {
      names.push_back(each.name());
    }
    scope.report.AtOp(scope.block, op, "expected the name of a fusion pattern,",
                      " found \"", name, "\"", NearestHint(name, names));
  } else if (pattern->MatchBody(*op.body).ops().empty()) {
    scope.report.AtOp(scope.block, op, "body: expected that of ", name, ", ",
                      pattern->formula());
  }
}

void CheckBody(BlockScope& scope, const Op& op) {
  static const OpSchema* const kFusion = Ops().Find("fusion");
  const bool fusion = op.schema == kFusion;
  if (fusion != (op.body != nullptr)) {
    scope.report.AtOp(scope.block, op, "expected ",
                      fusion ? "a body" : "no body: it is no fusion");
    return;
  }
  if (!fusion) return;
  if (scope.entry == nullptr) {
    scope.report.AtOp(scope.block, op, "expected no fusion within a fusion");
    return;
  }
  const Block& body = *op.body;
  for (int i = 0; i < body.value_limit(); ++i) {
    const Value& value = body.value(ValueId(i));
    if (!value.erased && (value.definition == Definition::kCell ||
                          value.definition == Definition::kConstant)) {
      scope.report.AtOp(scope.block, op, "body: expected arguments alone, ",
                        "found the cell or constant ", body.name(value.id));
    }
  }
  const int sound = scope.report.count();
  CheckBlock(scope.program, body, nullptr, scope.phase, 0, scope.report,
             scope.memo);
  if (scope.report.count() > sound) return;
  CheckBodyTypes(scope, op, "arguments", body.Feeds(), op.inputs.all());
  CheckBodyTypes(scope, op, "results", body.body_results(), op.outputs.all());
  CheckPattern(scope, op);
}

void CheckBodyNames(BlockScope& scope, const Block& body) {
  if (scope.memo.good_names() == scope.program.names().size()) return;
  for (int i = 0; i < body.value_limit(); ++i) {
    const Value& value = body.value(ValueId(i));
    if (!value.erased) CheckName(scope, value.name, "a value's", 0);
  }
  for (OpId id = body.first(); id.valid(); id = body.next(id)) {
    const Op& op = body.op(id);
    CheckName(scope, op.name, "an op's", op.line);
  }
}

// What all ops of a kind have in common: types that agree with the schema, a
// body that is its pattern's.
bool CheckKind(BlockScope& scope, const Op& op) {
  // Passes make bodies by edits, which keep ids and use lists. Of any other
  // nothing is known until it was looked at, not even that its list ends.
  if (scope.since > 0 && scope.memo.HasPassed(KindOf(scope.block, op.id))) {
    if (op.body != nullptr) CheckBodyNames(scope, *op.body);
    return true;
  }
  const int before = scope.report.count();
  CheckBody(scope, op);
  if (scope.report.count() > before) return false;
  // Made anew, and what was kept is held to it.
  const TypeMemo::Key kind = TypeKey(scope.block, op).value();
  const TypeMemo::Key kept = scope.block.kind(op.id);
  if (kept != 0 && kept != kind) {
    scope.report.AtOp(scope.block, op, "it was changed without an edit");
    return false;
  }
  if (scope.memo.HasPassed(kind)) return true;
  const absl::Status status = CheckTypes(scope.block, op);
  if (status.ok()) {
    scope.memo.SetPassed(kind);
    return true;
  }
  // The message names file, line and op.
  scope.report.Message(status.message());
  return false;
}

}  // namespace

// In order: an op that breaks one of the first is too broken for the others.
void CheckOp(BlockScope& scope, const Op& op) {
  CheckOpName(scope, op);
  if (!CheckSchema(scope, op) || !CheckAttrs(scope, op) ||
      !CheckOutputs(scope, op) || !CheckOrder(scope, op) ||
      !CheckKind(scope, op)) {
    return;
  }
  CheckContiguous(scope, op);
  CheckReason(scope, op);
}

void CheckReason(BlockScope& scope, const Op& op) {
  if (scope.entry == nullptr || scope.phase < ReasonFrom(op)) return;
  if (op.decision.reason == Reason::kNone ||
      op.decision.precision == DType::kInvalid) {
    scope.report.AtOp(scope.block, op,
                      "expected a precision and a reason for it");
  }
}

}  // namespace verify
}  // namespace halftone
