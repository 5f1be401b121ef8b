#include "passes/lower/fuse.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"
#include "passes/lower/patterns/pattern.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Copies ops in program order into a closed block; values that they read from
// outside become its feeds.
class BodyMaker {
 public:
  BodyMaker(Block& outer, absl::Span<const OpId> group)
      : outer_(outer),
        group_(group),
        block_(std::make_unique<Block>(&outer.program())) {}

  std::unique_ptr<Block> Make() {
    AddFeeds();
    for (OpId id : group_) Copy(outer_.op(id));
    const ValueId result = outer_.op(group_.back()).outputs.all()[0];
    block_->body_results().push_back(inner_.at(result));
    return std::move(block_);
  }
  // Values of the outer block, in the order of the feeds.
  const std::vector<ValueId>& arguments() const { return arguments_; }

 private:
  void AddFeeds();
  void Copy(const Op& op);

  Block& outer_;
  absl::Span<const OpId> group_;
  std::unique_ptr<Block> block_;
  std::vector<ValueId> arguments_;
  absl::flat_hash_map<ValueId, ValueId> inner_;
};

void BodyMaker::AddFeeds() {
  absl::flat_hash_set<ValueId> made_inside;
  for (OpId id : group_) {
    const auto outputs = outer_.op(id).outputs.all();
    made_inside.insert(outputs.begin(), outputs.end());
  }
  for (OpId id : group_) {
    for (ValueId in : outer_.op(id).inputs.all()) {
      if (made_inside.contains(in) || inner_.contains(in)) continue;
      inner_[in] = block_->AddFeed(outer_.name(in), outer_.type(in));
      arguments_.push_back(in);
    }
  }
}

void BodyMaker::Copy(const Op& op) {
  const OpId id = block_->CopyOp(
      op, outer_, [this](ValueId value) { return inner_.at(value); });
  const Op& copy = block_->op(id);
  for (size_t i = 0; i < op.outputs.all().size(); ++i) {
    inner_[op.outputs.all()[i]] = copy.outputs.all()[i];
  }
}

// `group` in program order; its last op makes the only visible value.
absl::StatusOr<OpId> Replace(Block& block, const std::string& pattern,
                             absl::Span<const OpId> group, HeldValues& held) {
  BodyMaker maker(block, group);
  std::unique_ptr<Block> body = maker.Make();
  const Op& last = block.op(group.back());
  const ValueId result = last.outputs.all()[0];
  OpBuilder builder(&block, "fusion");
  builder.Name(absl::StrCat(block.name(last), ".fused"))
      .At(Block::Before(last.id))
      .Role(last.role)
      .Why(last.decision)
      .Line(last.line)
      .In("X", maker.arguments())
      .Attr("pattern", pattern)
      .Out("Out", block.name(result), block.type(result))
      .Unique();
  HT_ASSIGN_OR_RETURN(const OpId made, builder.Build());
  Op& fusion = block.op(made);
  fusion.body = std::move(body);
  std::vector<NameId> names;
  for (OpId id : group) AppendNames(block.op(id), &names);
  AddOrigins(fusion, names);

  const std::string name(block.name(result));
  ReplaceValue(block, result, fusion.outputs.all()[0], held);
  for (auto id = group.rbegin(); id != group.rend(); ++id) block.EraseOp(*id);
  block.RenameValue(fusion.outputs.all()[0], name);
  return made;
}

// Fuses every group of one pattern, from the last op up, so that a chain is
// met at its end.
absl::StatusOr<bool> FuseAll(Block& block, const Pattern& pattern,
                             HeldValues& held) {
  const std::vector<int32_t> numbering = block.Numbering();
  bool changed = false;
  for (OpId id = block.last(); id.valid(); id = block.op(id).previous) {
    std::vector<OpId> group = pattern.match(block, id, held);
    if (group.empty()) continue;
    std::sort(group.begin(), group.end(), [&](OpId a, OpId b) {
      return numbering[a.index()] < numbering[b.index()];
    });
    // It stands where the group's last op stood.
    HT_ASSIGN_OR_RETURN(id, Replace(block, pattern.name, group, held));
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> Fuse::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    HeldValues held(*entry);
    for (const Pattern& pattern : AllPatterns()) {
      if (!kernels_->HasPattern(pattern.name)) continue;
      HT_ASSIGN_OR_RETURN(const bool fused,
                          FuseAll(entry->block(), pattern, held));
      changed |= fused;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
