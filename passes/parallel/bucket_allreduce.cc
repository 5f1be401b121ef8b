#include "passes/parallel/bucket_allreduce.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/parallel/buckets.h"
#include "passes/parallel/move_behind.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

absl::StatusOr<BucketItem> ItemOf(const Block& block, const Op& reduction) {
  BucketItem item;
  for (ValueId member : reduction.inputs.all()) {
    const Dim elements = block.type(member).Elements();
    if (!elements.is_constant()) {
      return CompilerBug("gradient ", block.name(member),
                         " has a symbolic size: expected a parameter's");
    }
    item.dtype = block.dtype(member);
    item.bytes += elements.coefficient() * SizeOf(item.dtype);
  }
  return item;
}

using Joined = absl::flat_hash_map<ValueId, ValueId>;

// Replaces the reductions of one bucket by one that stands in the last one's
// place and keeps their values. `*joined_values` gets what stands for each.
absl::Status Join(Block& block, absl::Span<const OpId> reductions, DType dtype,
                  int index, Joined* joined_values) {
  const Op& last = block.op(reductions.back());
  std::vector<ValueId> members, reduced;
  std::vector<NameId> names;
  for (OpId id : reductions) {
    const Op& op = block.op(id);
    for (ValueId in : op.inputs.all()) members.push_back(in);
    for (ValueId out : op.outputs.all()) reduced.push_back(out);
    AppendNames(op, &names);
  }
  OpBuilder joined = MakeOp(block, "all_reduce", Role::kCommunicate);
  joined.Name(absl::StrCat("gradients.", Name(dtype), ".", index))
      .At(Block::Before(reductions.back()))
      .Why(FixedBySchema(dtype))
      .In("X", members)
      .AttrsOf(last)
      .Attr("bucket", int64_t{index});
  for (ValueId out : reduced) joined.Out("Out", block.value(out).name);
  HT_ASSIGN_OR_RETURN(const OpId made, joined.Build());
  Op& op = block.mutable_op(made);
  AddOrigins(op, names);
  const std::vector<ValueId> fresh(op.outputs.all().begin(),
                                   op.outputs.all().end());
  std::vector<NameId> value_names;
  for (size_t i = 0; i < reduced.size(); ++i) {
    value_names.push_back(block.value(reduced[i]).name);
    while (!block.value(reduced[i]).uses.empty()) {
      const Use use = block.value(reduced[i]).uses.back();
      block.SetInput(use.op, use.position, fresh[i]);
    }
    joined_values->emplace(reduced[i], fresh[i]);
  }
  for (OpId id : reductions) block.EraseOp(id);
  for (size_t i = 0; i < fresh.size(); ++i) {
    block.RenameValue(fresh[i], value_names[i]);
  }
  return absl::OkStatus();
}

// What the entry holds of them, in one sweep.
void HoldJoined(const Joined& joined, Entry& entry) {
  const auto replace = [&joined](ValueId& value) {
    const auto it = joined.find(value);
    if (it != joined.end()) value = it->second;
  };
  for (GradientStatement& gradient : entry.gradients()) replace(gradient.value);
  for (CommitStatement& commit : entry.commits()) replace(commit.value);
  for (Result& result : entry.results()) replace(result.value);
}

}  // namespace

absl::StatusOr<bool> BucketAllreduce::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || !dist_.fuse_all_reduce_ops()) return false;
  Block& block = train->block();
  std::vector<OpId> reductions;
  std::vector<BucketItem> items;
  for (OpId id : OpsOfType(block, "all_reduce")) {
    if (!IsReduction(block.op(id), "gradient")) continue;
    reductions.push_back(id);
    HT_ASSIGN_OR_RETURN(const BucketItem item, ItemOf(block, block.op(id)));
    items.push_back(item);
  }
  const std::vector<Bucket> buckets =
      AssignBuckets(items, dist_, join_stranded_);
  bool changed = false;
  for (const Bucket& bucket : buckets) changed |= bucket.items.size() > 1;
  if (!changed) return false;
  MoveReadersBehind(block, reductions);
  Joined joined;
  for (size_t b = 0; b < buckets.size(); ++b) {
    std::vector<OpId> members;
    for (int item : buckets[b].items) members.push_back(reductions[item]);
    HT_RETURN_IF_ERROR(
        Join(block, members, buckets[b].dtype, static_cast<int>(b), &joined));
  }
  HoldJoined(joined, *train);
  return true;
}

}  // namespace passes
}  // namespace halftone
