#include "passes/lower/fuse.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
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
      : outer_(outer),
        group_(group),
        block_(std::make_unique<Block>(&outer.program())) {}

  std::unique_ptr<Block> Make(absl::Span<const ValueId> results) {
    AddFeeds();
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
  void AddFeeds();
  void Take(Op& op);

  Block& outer_;
  absl::Span<const OpId> group_;
  std::unique_ptr<Block> block_;
  absl::InlinedVector<ValueId, 8> arguments_;
  Inside inside_;
};

void BodyMaker::AddFeeds() {
  for (OpId id : group_) {
    for (ValueId in : outer_.op(id).inputs.all()) {
      if (IsMadeInside(in) || inside_.Find(in).valid()) continue;
      inside_.Set(in,
                  block_->AddFeed(outer_.value(in).name, outer_.type_id(in)));
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

// `group` in program order.
absl::StatusOr<OpId> Replace(Block& block, const FusionPattern& pattern,
                             absl::Span<const OpId> group, const Plan& plan) {
  const Op& last = block.op(group.back());
  OpBuilder builder(&block, "fusion");
  builder.Name(block.program().names().Append(last.name, ".fused"))
      .At(Block::Before(plan.before))
      .Role(last.role)
      .Why(last.decision)
      .Line(last.line)
      .Attr("pattern", pattern.name());
  if (!pattern.rounds().empty()) builder.Attr("rounds", pattern.rounds());
  std::vector<NameId> names;
  names.reserve(2 * group.size());
  for (OpId id : group) AppendNames(block.op(id), &names);
  BodyMaker maker(block, group);
  std::unique_ptr<Block> body = maker.Make(plan.results);
  builder.In("X", maker.arguments());
  HT_ASSIGN_OR_RETURN(const OpId made, builder.Build());
  Op& fusion = block.mutable_op(made);
  fusion.body = std::move(body);
  AddOrigins(fusion, names);

  // Readers go on reading the values that they read.
  for (ValueId result : plan.results) block.MoveOutput(result, made, 0);
  for (auto id = group.rbegin(); id != group.rend(); ++id) block.EraseOp(*id);
  return made;
}

// Fuses every group of one pattern, from the last op up, so that a chain is
// met at its end.
absl::StatusOr<bool> FuseAll(Block& block, const FusionPattern& pattern,
                             const PatternSet& patterns,
                             const HeldValues& held) {
  Order order(block);
  bool changed = false;
  OpId next;
  for (OpId id = block.last(); id.valid(); id = next) {
    next = block.previous(id);
    const FusionGroup match = pattern.Match(block, id, held.function());
    if (match.ops().empty() ||
        !patterns.Has(pattern, pattern.KeyType(block, match))) {
      continue;
    }
    std::vector<OpId> group = match.ops();
    std::sort(group.begin(), group.end(),
              [&](OpId a, OpId b) { return order.IsBefore(a, b); });
    const Plan plan = PlanFusion(block, group, held, order);
    if (!plan.before.valid()) continue;
    while (absl::c_linear_search(group, next)) next = block.previous(next);
    const int32_t number = order[plan.before];
    HT_ASSIGN_OR_RETURN(const OpId made, Replace(block, pattern, group, plan));
    order.Add(made, number);
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
      if (!patterns_.Has(pattern) || !pattern.CanEndIn(entry->block())) {
        continue;
      }
      HT_ASSIGN_OR_RETURN(const bool fused,
                          FuseAll(entry->block(), pattern, patterns_, held));
      changed |= fused;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
