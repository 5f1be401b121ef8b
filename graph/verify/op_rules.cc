// Ops: schema, order, uses, types, reasons, bodies.

#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "graph/verify/limits.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

bool CheckOpName(BlockScope& scope, const Op& op) {
  const absl::string_view name = scope.block.name(op);
  const std::string wrong = BadName(name);
  if (!wrong.empty()) scope.report.At(op.line, "an op's name ", wrong);
  if (!FirstTime(op.name.index(), scope.op_names)) {
    scope.report.At(op.line, "two ops are called ", name);
  }
  return true;
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

// Single assignment, and definition before use.
bool CheckOrder(BlockScope& scope, const Op& op) {
  const auto inputs = op.inputs.all();
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
    const int use =
        i < static_cast<int>(op.use_indices.size()) ? op.use_indices[i] : -1;
    if (use < 0 || use >= static_cast<int>(value.uses.size()) ||
        !(value.uses[use] == Use{op.id, i})) {
      scope.report.AtOp(scope.block, op, "slot ", slot(), ": the uses of ",
                        scope.block.name(value.id), " leave it out");
    }
  }
  return true;
}

bool CheckOpTypes(BlockScope& scope, const Op& op) {
  if (scope.checked.Passed(scope.block, op)) return true;
  const absl::Status status = CheckTypes(scope.block, op);
  if (status.ok()) return true;
  scope.checked.Forget();
  // The message names file, line and op.
  scope.report.Message(status.message());
  return false;
}

// The members of a contiguous slot lie side by side, so each lies once.
bool CheckContiguous(BlockScope& scope, const Op& op) {
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
  return true;
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
    const TensorType& expected = scope.block.type(outside[i]);
    const TensorType& found = op.body->type(inside[i]);
    if (found != expected) {
      scope.report.AtOp(scope.block, op, "body: ", what, ": expected ",
                        scope.Print(expected), ", found ", scope.Print(found));
    }
  }
}

bool CheckBody(BlockScope& scope, const Op& op) {
  const bool fusion = op.schema->name() == "fusion";
  if (fusion != (op.body != nullptr)) {
    scope.report.AtOp(scope.block, op, "expected ",
                      fusion ? "a body" : "no body: it is no fusion");
    return true;
  }
  if (!fusion) return true;
  if (scope.entry == nullptr) {
    scope.report.AtOp(scope.block, op, "expected no fusion within a fusion");
    return true;
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
  const int before = scope.report.count();
  CheckBlock(scope.program, body, nullptr, scope.phase, scope.report,
             scope.checked);
  if (scope.report.count() > before) return true;
  CheckBodyTypes(scope, op, "arguments", body.Feeds(), op.inputs.all());
  CheckBodyTypes(scope, op, "results", body.body_results(), op.outputs.all());
  return true;
}

// After precision every forward op has a reason, after backward every op.
bool CheckReason(BlockScope& scope, const Op& op) {
  if (scope.entry == nullptr) return true;
  if (scope.phase < Phase::kBackward && op.role != Role::kForward) return true;
  if (op.decision.reason == Reason::kNone ||
      op.decision.precision == DType::kInvalid) {
    scope.report.AtOp(scope.block, op,
                      "expected a precision and a reason for it");
  }
  return true;
}

bool CheckSplit(BlockScope& scope, const Op& op) {
  if (op.schema->split_only()) {
    scope.report.AtOp(scope.block, op,
                      "it has no kernel: expected it to be split by now");
  }
  return true;
}

constexpr OpRule kRules[] = {
    {Phase::kSource, CheckOpName},     {Phase::kSource, CheckSchema},
    {Phase::kSource, CheckAttrs},      {Phase::kSource, CheckOutputs},
    {Phase::kSource, CheckOrder},      {Phase::kSource, CheckOpTypes},
    {Phase::kSource, CheckContiguous}, {Phase::kSource, CheckBody},
    {Phase::kPrecision, CheckReason},  {Phase::kLowered, CheckSplit},
};

}  // namespace

absl::Span<const OpRule> OpRules() { return kRules; }

}  // namespace verify
}  // namespace halftone
