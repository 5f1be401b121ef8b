#include "passes/rewrite/rewrite.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {

HeldValues::HeldValues(const Entry& entry)
    : held_(entry.block().value_limit()) {
  for (const GradientStatement& g : entry.gradients()) Hold(g.value);
  for (const CommitStatement& commit : entry.commits()) Hold(commit.value);
  for (const Result& result : entry.results()) Hold(result.value);
}

void ReplaceValue(Block& block, ValueId from, ValueId to, HeldValues& held) {
  if (from == to) return;
  if (held.Has(from)) {
    block.ReplaceUses(from, to);
    held.Replace(from, to);
    return;
  }
  while (!block.value(from).uses.empty()) {
    const Use use = block.value(from).uses.back();
    block.SetInput(use.op, use.position, to);
  }
}

bool IsDead(const Block& block, const Op& op, const HeldValues& held) {
  return std::all_of(
      op.outputs.all().begin(), op.outputs.all().end(), [&](ValueId output) {
        return block.value(output).uses.empty() && !held.Has(output);
      });
}

void AppendNames(const Op& op, std::vector<NameId>* names) {
  names->push_back(op.name);
  names->insert(names->end(), op.origins.begin(), op.origins.end());
}

void AddOrigins(Op& op, absl::Span<const NameId> names) {
  // A bucket of a thousand gradients has a thousand origins.
  constexpr size_t kFew = 16;
  if (op.origins.size() + names.size() <= kFew) {
    for (NameId name : names) {
      if (name != op.name && !absl::c_linear_search(op.origins, name)) {
        op.origins.push_back(name);
      }
    }
    return;
  }
  absl::flat_hash_set<NameId> known;
  known.reserve(op.origins.size() + names.size() + 1);
  known.insert(op.origins.begin(), op.origins.end());
  known.insert(op.name);
  for (NameId name : names) {
    if (known.insert(name).second) op.origins.push_back(name);
  }
}

void InheritOrigins(const Op& from, Op& to) {
  std::vector<NameId> names;
  AppendNames(from, &names);
  AddOrigins(to, names);
}

Decision FixedBySchema(DType precision) {
  Decision decision;
  decision.precision = precision;
  decision.reason = Reason::kSchema;
  return decision;
}

OpBuilder MakeOp(Block& block, absl::string_view op_type, Role role) {
  OpBuilder builder(&block, op_type);
  builder.Role(role).Why(FixedBySchema(DType::kF32)).Unique();
  return builder;
}

absl::StatusOr<ValueId> BuildValue(Block& block, OpBuilder& builder) {
  HT_ASSIGN_OR_RETURN(const OpId op, builder.Build());
  return block.op(op).outputs.all()[0];
}

void SetAttrOf(Block& block, OpId op, absl::string_view name, AttrValue value) {
  Op& of = block.mutable_op(op);
  AttrList attrs(of.attrs.begin(), of.attrs.end());
  SetAttr(*of.schema, name, std::move(value), &attrs);
  of.attrs = block.program().Intern(std::move(attrs));
}

bool IsOp(const Block& block, OpId op, absl::string_view op_type) {
  return op.valid() && block.schema(op)->name() == op_type;
}

ValueId InputOf(const Op& op, absl::string_view slot) {
  const int index = op.schema->FindInput(slot);
  return index >= 0 && op.inputs.has(index) ? op.in(index) : ValueId();
}

const Op* DefinedBy(const Block& block, ValueId value, const OpSchema* schema) {
  if (!value.valid()) return nullptr;
  const OpId op = block.value(value).op();
  return op.valid() && block.schema(op) == schema ? &block.op(op) : nullptr;
}

const Op* DefinedBy(const Block& block, ValueId value,
                    absl::string_view op_type) {
  return DefinedBy(block, value, Ops().Find(op_type));
}

std::vector<OpId> OpsOfType(const Block& block, absl::string_view op_type) {
  return block.OpsOf(Ops().Find(op_type));
}

int CountOfType(const Block& block, absl::string_view op_type) {
  return block.CountOf(Ops().Find(op_type));
}

absl::InlinedVector<OpId, 2> LowCastsOf(const Block& block, CellId cell) {
  static const OpSchema* const kCast = Ops().Find("cast");
  absl::InlinedVector<OpId, 2> casts;
  const ValueId value = block.FindCellValue(cell);
  if (!value.valid()) return casts;
  for (const Use& use : block.value(value).uses) {
    if (block.schema(use.op) == kCast &&
        IsLow(block.dtype(block.op(use.op).out(0)))) {
      casts.push_back(use.op);
    }
  }
  return casts;
}

}  // namespace passes
}  // namespace halftone
