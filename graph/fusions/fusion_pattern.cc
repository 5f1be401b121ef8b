#include "graph/fusions/fusion_pattern.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/check.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

// A kernel's library has a registry of its own: a schema is known by its name.
bool IsOf(const OpSchema& schema, const OpSchema& type) {
  return &schema == &type || schema.name() == type.name();
}

}  // namespace

OpId FusionGroup::Of(absl::string_view role) const {
  const int at = pattern_->FindRole(role);
  HT_CHECK(at >= 0, "the pattern has the role");
  return at < static_cast<int>(by_role_.size()) ? by_role_[at] : OpId();
}

bool FusionGroup::Contains(OpId op) const {
  return absl::c_linear_search(ops_, op);
}

ValueId FusionPattern::Context::In(absl::string_view slot) const {
  const int at = op.schema->FindInput(slot);
  return at >= 0 && op.inputs.has(at) ? op.in(at) : ValueId();
}

FusionPattern::FusionPattern(std::string name, std::string formula)
    : name_(std::move(name)), formula_(std::move(formula)) {}

FusionPattern& FusionPattern::AddRole(std::string role, Kind kind,
                                      const std::string& op_type,
                                      const std::vector<std::string>& values) {
  Role made;
  made.name = std::move(role);
  made.kind = kind;
  made.type = Ops().Find(op_type);
  HT_CHECK(made.type != nullptr, "the op of a role exists");
  for (const std::string& value : values) {
    made.values.push_back(ParsePlace(value));
  }
  return AddRole(std::move(made));
}

FusionPattern& FusionPattern::AddRole(Role role) {
  HT_CHECK(FindRole(role.name) < 0, "a role has one declaration");
  roles_.push_back(std::move(role));
  return *this;
}

FusionPattern& FusionPattern::LastOf(std::string role, Types types) {
  Role made;
  made.name = std::move(role);
  made.types = std::move(types);
  return AddRole(std::move(made));
}

FusionPattern& FusionPattern::Last(std::string role, std::string op_type) {
  return AddRole(std::move(role), Kind::kLast, op_type, {});
}
FusionPattern& FusionPattern::Producer(std::string role, std::string op_type,
                                       const std::vector<std::string>& values) {
  return AddRole(std::move(role), Kind::kProducer, op_type, values);
}
FusionPattern& FusionPattern::Hidden(std::string role, std::string op_type,
                                     const std::vector<std::string>& values) {
  return AddRole(std::move(role), Kind::kHidden, op_type, values);
}
FusionPattern& FusionPattern::Reader(std::string role, std::string op_type,
                                     const std::vector<std::string>& values) {
  return AddRole(std::move(role), Kind::kReader, op_type, values);
}
FusionPattern& FusionPattern::Optional() {
  roles_.back().optional = true;
  return *this;
}
FusionPattern& FusionPattern::If(Condition condition) {
  roles_.back().condition = std::move(condition);
  return *this;
}
FusionPattern& FusionPattern::And(Collect collect) {
  collect_ = std::move(collect);
  return *this;
}
FusionPattern& FusionPattern::KeyedBy(absl::string_view value) {
  key_ = ParsePlace(value);
  HT_CHECK(!roles_[key_.role].optional, "a key's op is always there");
  return *this;
}
FusionPattern& FusionPattern::Rounds(std::string what) {
  rounds_ = std::move(what);
  return *this;
}

int FusionPattern::FindRole(absl::string_view name) const {
  for (size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

FusionPattern::Place FusionPattern::ParsePlace(absl::string_view text) const {
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  HT_CHECK(parts.size() == 2, "a value is role.Slot");
  const int role = FindRole(parts[0]);
  HT_CHECK(role >= 0, "roles are declared from the last op up");
  const std::pair<std::string, std::string> slot =
      absl::StrSplit(absl::StripSuffix(parts[1], "]"), absl::MaxSplits('[', 1));
  int index = 0;
  HT_CHECK(slot.second.empty() || absl::SimpleAtoi(slot.second, &index),
           "of a list: role.Slot[1]");
  return {role, slot.first, index};
}

bool FusionPattern::HasType(const Role& role, const OpSchema& type) {
  return role.type != nullptr ? IsOf(type, *role.type) : role.types(type);
}

std::vector<const OpSchema*> FusionPattern::EndsIn(const Block& block) const {
  std::vector<const OpSchema*> ends;
  bool may_be_last = true;
  for (const Role& role : roles_) {
    bool has_one = false;
    for (const auto& [schema, count] : block.counts()) {
      if (count == 0 || !HasType(role, *schema)) continue;
      has_one = true;
      if (may_be_last) ends.push_back(schema);
    }
    if (role.optional) continue;
    if (!has_one) return {};
    may_be_last = false;
  }
  return ends;
}

ValueId FusionPattern::ValueAt(const Block& block, const FusionGroup& group,
                               const Place& place) const {
  const OpId id = group.by_role_[place.role];
  if (!id.valid()) return ValueId();
  const Op& op = block.op(id);
  if (place.slot.empty()) return op.outputs.all()[0];
  const int in = op.schema->FindInput(place.slot);
  if (in >= 0) {
    return place.index < static_cast<int>(op.inputs.slot(in).size())
               ? op.inputs.all()[op.inputs.begin(in) + place.index]
               : ValueId();
  }
  const int out = op.schema->FindOutput(place.slot);
  return out >= 0 && op.outputs.has(out) ? op.out(out) : ValueId();
}

bool FusionPattern::Fits(const Block& block, const Role& role, OpId id,
                         const FusionGroup& group, IsHeld held) const {
  if (!id.valid() || group.Contains(id)) return false;
  if (!HasType(role, *block.schema(id))) return false;
  return !role.condition || role.condition({block, block.op(id), group, held});
}

bool FusionPattern::CanTake(absl::string_view role, const Block& block, OpId op,
                            IsHeld held) const {
  const int at = FindRole(role);
  HT_CHECK(at >= 0, "the pattern has the role");
  return Fits(block, roles_[at], op, FusionGroup(*this), held);
}

OpId FusionPattern::Find(const Block& block, const Role& role,
                         const FusionGroup& group, IsHeld held) const {
  for (const Place& place : role.values) {
    const ValueId value = ValueAt(block, group, place);
    if (!value.valid()) continue;
    if (role.kind == Kind::kReader) {
      for (const Use& use : block.value(value).uses) {
        if (Fits(block, role, use.op, group, held)) return use.op;
      }
      continue;
    }
    const OpId producer =
        role.kind == Kind::kHidden
            ? OnlyFor(block, group.by_role_[place.role], value, held)
            : block.value(value).op();
    if (Fits(block, role, producer, group, held)) return producer;
  }
  return OpId();
}

FusionGroup FusionPattern::Match(const Block& block, OpId last,
                                 IsHeld held) const {
  FusionGroup group(*this);
  for (const Role& role : roles_) {
    OpId found;
    if (!group.ops_.empty()) {
      found = Find(block, role, group, held);
    } else if (Fits(block, role, last, group, held)) {
      found = last;
    }
    if (!found.valid() && !role.optional) return FusionGroup(*this);
    group.by_role_.push_back(found);
    if (found.valid()) group.ops_.push_back(found);
  }
  if (collect_ && !group.ops_.empty()) collect_(block, held, &group);
  if (group.ops_.size() < 2) return FusionGroup(*this);
  return group;
}

FusionGroup FusionPattern::MatchBody(const Block& body) const {
  const std::vector<ValueId>& results = body.body_results();
  const auto is_result = [&](ValueId value) {
    return absl::c_linear_search(results, value);
  };
  for (OpId id = body.last(); id.valid(); id = body.previous(id)) {
    FusionGroup group = Match(body, id, is_result);
    if (static_cast<int>(group.ops().size()) == body.num_ops()) return group;
  }
  return FusionGroup(*this);
}

const TensorType& FusionPattern::KeyType(const Block& block,
                                         const FusionGroup& group) const {
  return block.type(ValueAt(block, group, key_));
}

OpId OnlyFor(const Block& block, OpId reader, ValueId value, IsHeld held) {
  const OpId producer = block.value(value).op();
  if (!producer.valid() || held(value)) return OpId();
  for (const Use& use : block.value(value).uses) {
    if (use.op != reader) return OpId();
  }
  const Op& op = block.op(producer);
  const bool alone = op.outputs.all().size() == 1 && op.body == nullptr &&
                     op.role == block.op(reader).role && !op.schema->no_merge();
  return alone ? producer : OpId();
}

}  // namespace halftone
