#include "passes/lower/fuse.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/type_key.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Which value of a body stands for one outside: a dozen at most.
class Inside {
 public:
  void Set(ValueId outer, ValueId inner) { pairs_.emplace_back(outer, inner); }
  // Invalid if there is none.
  ValueId Find(ValueId outer) const {
    for (const auto& [from, to] : pairs_) {
      if (from == outer) return to;
    }
    return ValueId();
  }

 private:
  absl::InlinedVector<std::pair<ValueId, ValueId>, 16> pairs_;
};

// Takes ops in program order into a closed block; values that they read from
// outside become its feeds. The ops are only good for erasing afterwards.
class BodyMaker {
 public:
  BodyMaker(Block& outer, absl::Span<const OpId> group)
      : outer_(outer), group_(group) {}

  std::unique_ptr<Block> Make(absl::Span<const ValueId> results) {
    FindArguments();
    const int ops = static_cast<int>(group_.size());
    block_ = std::make_unique<Block>(&outer_.program(), ops, CountValues());
    for (ValueId argument : arguments_) {
      const Value& outside = outer_.value(argument);
      inside_.Set(argument, block_->AddFeed(outside.name, outside.type));
    }
    for (OpId id : group_) Take(outer_.mutable_op(id));
    for (ValueId result : results) {
      block_->body_results().push_back(inside_.Find(result));
    }
    return std::move(block_);
  }
  // Values of the outer block, in the order of the feeds.
  absl::Span<const ValueId> arguments() const { return arguments_; }

 private:
  bool IsMadeInside(ValueId value) const {
    return absl::c_linear_search(group_, outer_.value(value).op());
  }
  void FindArguments();
  int CountValues() const {
    size_t count = arguments_.size();
    for (OpId id : group_) count += outer_.op(id).outputs.all().size();
    return static_cast<int>(count);
  }
  void Take(Op& op);

  Block& outer_;
  absl::Span<const OpId> group_;
  std::unique_ptr<Block> block_;
  absl::InlinedVector<ValueId, 8> arguments_;
  Inside inside_;
};

void BodyMaker::FindArguments() {
  for (OpId id : group_) {
    for (ValueId in : outer_.op(id).inputs.all()) {
      if (IsMadeInside(in) || absl::c_linear_search(arguments_, in)) continue;
      arguments_.push_back(in);
    }
  }
}

void BodyMaker::Take(Op& op) {
  const OpId id = block_->TakeOp(
      op, outer_, [this](ValueId value) { return inside_.Find(value); });
  const Op& taken = block_->op(id);
  for (size_t i = 0; i < op.outputs.all().size(); ++i) {
    inside_.Set(op.outputs.all()[i], taken.outputs.all()[i]);
  }
}

using Values = absl::InlinedVector<ValueId, 4>;

// Where a block's ops stand while groups of them are replaced.
class Order {
 public:
  explicit Order(const Block& block)
      : block_(block), numbers_(block.Numbering()) {}

  // Of two ops the one with the lower number stands first. A fusion has that of
  // the op in whose place, or before which, it stands: how ops of the same
  // number follow each other is not known.
  int32_t operator[](OpId op) const { return numbers_[op.index()]; }
  // Whether it is known to be.
  bool IsBefore(OpId a, OpId b) const {
    return a.valid() && b.valid() && (*this)[a] < (*this)[b];
  }
  // The one that stands first; invalid if that is not known.
  OpId First(OpId a, OpId b) const {
    if (a == b || IsBefore(a, b)) return a;
    return IsBefore(b, a) ? b : OpId();
  }

  void Add(OpId fusion, int32_t number) {
    numbers_.resize(block_.op_limit(), -1);
    numbers_[fusion.index()] = number;
  }

 private:
  const Block& block_;
  std::vector<int32_t> numbers_;
};

// What a fusion of a group makes, and where it can stand.
struct Plan {
  // The group's values that somebody else reads; of a group that nobody reads,
  // its last value.
  Values results;
  // The fusion stands before it; invalid: nowhere.
  OpId before;
};

// `group` in program order.
Plan PlanFusion(const Block& block, absl::Span<const OpId> group,
                const HeldValues& held, const Order& order) {
  const auto is_inside = [&](OpId op) {
    return absl::c_linear_search(group, op);
  };
  Plan plan;
  OpId first = group.back();
  for (OpId id : group) {
    for (ValueId value : block.op(id).outputs.all()) {
      bool read = held.Has(value);
      for (const Use& use : block.value(value).uses) {
        if (is_inside(use.op)) continue;
        read = true;
        first = order.First(first, use.op);
      }
      if (read) plan.results.push_back(value);
    }
  }
  if (plan.results.empty()) {
    plan.results.push_back(block.op(group.back()).outputs.all()[0]);
  }
  // Further up, all that it reads must be there, too.
  for (OpId id : group) {
    for (ValueId input : block.op(id).inputs.all()) {
      const OpId producer = block.value(input).op();
      if (!producer.valid() || is_inside(producer)) continue;
      if (first != group.back() && !order.IsBefore(producer, first)) {
        return plan;
      }
    }
  }
  plan.before = first;
  return plan;
}

// What a fusion of the pattern says of itself.
Attrs AttrsOf(Program& program, const OpSchema& fusion,
              const FusionPattern& pattern) {
  AttrList attrs;
  SetAttr(fusion, "pattern", pattern.name(), &attrs);
  if (!pattern.rounds().empty()) {
    SetAttr(fusion, "rounds", pattern.rounds(), &attrs);
  }
  return program.Intern(std::move(attrs));
}

// Fuses the groups of one pattern in a block.
class Fuser {
 public:
  Fuser(Block& block, const FusionPattern& pattern, const PatternSet& patterns,
        const HeldValues& held)
      : block_(block),
        pattern_(pattern),
        patterns_(patterns),
        held_(held),
        ends_(pattern.EndsIn(block)),
        schema_(Ops().Find("fusion")),
        attrs_(AttrsOf(block.program(), *schema_, pattern)) {}

  bool Run();

 private:
  // In program order.
  using Group = absl::InlinedVector<OpId, 8>;

  // Empty: none of which the op stands last.
  Group FindGroup(OpId last);
  void Replace(const Group& group, const Plan& plan);

  Block& block_;
  const FusionPattern& pattern_;
  const PatternSet& patterns_;
  const HeldValues& held_;
  const std::vector<const OpSchema*> ends_;
  std::optional<Order> order_;  // once a group is found
  const OpSchema* const schema_;
  const Attrs attrs_;
  std::vector<NameId> names_;  // of a group's ops and what they came from
};

Fuser::Group Fuser::FindGroup(OpId last) {
  const FusionGroup match = pattern_.Match(block_, last, held_.function());
  if (match.ops().empty() ||
      !patterns_.Has(pattern_, pattern_.KeyType(block_, match))) {
    return {};
  }
  if (!order_.has_value()) order_.emplace(block_);
  Group group(match.ops().begin(), match.ops().end());
  std::sort(group.begin(), group.end(),
            [this](OpId a, OpId b) { return order_->IsBefore(a, b); });
  return group;
}

// A fusion makes no value, but takes over those that there are: OpBuilder,
// which names them and infers their types, would have nothing to do.
void Fuser::Replace(const Group& group, const Plan& plan) {
  const Op& last = block_.op(group.back());
  const NameId name = block_.program().names().Append(last.name, ".fused");
  Decision decision = last.decision;
  names_.clear();
  for (OpId id : group) AppendNames(block_.op(id), &names_);
  BodyMaker maker(block_, group);
  std::unique_ptr<Block> body = maker.Make(plan.results);

  SlotValues inputs;
  inputs.AddSlot(maker.arguments());
  Block::Outputs outputs;
  outputs.EndSlot();
  const OpId made = block_.AddOp(schema_, name, std::move(inputs), outputs,
                                 attrs_, Block::Before(plan.before));
  Op& fusion = block_.mutable_op(made);
  fusion.role = last.role;
  fusion.line = last.line;
  fusion.decision = std::move(decision);
  fusion.body = std::move(body);
  AddOrigins(fusion, names_);
  order_->Add(made, (*order_)[plan.before]);

  // Readers go on reading the values that they read.
  for (ValueId result : plan.results) block_.MoveOutput(result, made, 0);
  for (auto id = group.rbegin(); id != group.rend(); ++id) block_.EraseOp(*id);
  // Legality and the verifier ask for it, when the body is in no cache any
  // more.
  KindOf(block_, made);
}

// From the last op up, so that a chain is met at its end.
bool Fuser::Run() {
  if (ends_.empty()) return false;
  bool changed = false;
  OpId next;
  for (OpId id = block_.last(); id.valid(); id = next) {
    next = block_.previous(id);
    if (!absl::c_linear_search(ends_, block_.schema(id))) continue;
    const Group group = FindGroup(id);
    if (group.empty()) continue;
    const Plan plan = PlanFusion(block_, group, held_, *order_);
    if (!plan.before.valid()) continue;
    while (absl::c_linear_search(group, next)) next = block_.previous(next);
    Replace(group, plan);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> Fuse::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    const HeldValues held(*entry);
    for (const FusionPattern& pattern : FusionPatterns()) {
      if (!patterns_.Has(pattern)) continue;
      changed |= Fuser(entry->block(), pattern, patterns_, held).Run();
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
