#include "passes/lower/split_batch_norm.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/weigh_batch_norm.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Replaces one norm (or its gradient) by its parts, which stand in its place.
class Splitter {
 public:
  // `reduce`: sums are those of all ranks.
  Splitter(Block& block, OpId whole, HeldValues& held, bool reduce)
      : block_(block),
        whole_(whole),
        op_(block.op(whole)),
        held_(held),
        reduce_(reduce) {}

  // `saves`: what channel_stats says of it.
  absl::Status SplitForward(int64_t saves = 0);
  absl::Status SplitGradient();

 private:
  ValueId In(absl::string_view slot) const { return InputOf(op_, slot); }
  // A part computes on what the whole did, for the same reason.
  OpBuilder Part(absl::string_view op_type, absl::string_view suffix);
  // Local statistics (mean, variance, count), of all ranks if they are to be.
  absl::StatusOr<OpId> Combined(OpId stats);
  // The values, summed over all ranks if they are to be.
  absl::StatusOr<std::vector<ValueId>> Reduced(absl::Span<const ValueId> values,
                                               absl::string_view suffix);
  ValueId Count() const;
  // `part` replaces an output of the whole: for its readers, and in name.
  void ReplaceOutput(absl::string_view output, ValueId part);
  void Finish();

  Block& block_;
  OpId whole_;
  const Op& op_;
  HeldValues& held_;
  bool reduce_;
  std::vector<std::pair<ValueId, std::string>> renames_;
};

OpBuilder Splitter::Part(absl::string_view op_type, absl::string_view suffix) {
  OpBuilder builder(&block_, op_type);
  builder.Name(absl::StrCat(block_.name(op_), suffix))
      .At(Block::Before(whole_))
      .Role(op_.role)
      .Why(op_.decision)
      .Origin(op_.name)
      .Line(op_.line)
      .AttrsOf(op_)
      .Unique();
  return builder;
}

absl::StatusOr<std::vector<ValueId>> Splitter::Reduced(
    absl::Span<const ValueId> values, absl::string_view suffix) {
  if (!reduce_) return std::vector<ValueId>(values.begin(), values.end());
  const int64_t group = AttrAs<int64_t>(op_, "group_size");
  OpBuilder builder = MakeOp(block_, "all_reduce", Role::kCommunicate);
  builder.Name(absl::StrCat(block_.name(op_), suffix))
      .At(Block::Before(whole_))
      .Origin(op_.name)
      .In("X", values)
      .Attr("of", std::string("statistics"));
  if (group > 0) {
    builder.Attr("order", std::string("ranks")).Attr("group_size", group);
  }
  for (ValueId value : values) {
    builder.Out("Out", absl::StrCat(block_.name(value), ".reduced"));
  }
  HT_ASSIGN_OR_RETURN(const OpId made, builder.Build());
  const auto outputs = block_.op(made).outputs.all();
  return std::vector<ValueId>(outputs.begin(), outputs.end());
}

void Splitter::ReplaceOutput(absl::string_view output, ValueId part) {
  const ValueId whole = op_.out(op_.schema->FindOutput(output));
  renames_.emplace_back(part, std::string(block_.name(whole)));
  ReplaceValue(block_, whole, part, held_);
}

void Splitter::Finish() {
  block_.EraseOp(whole_);
  for (const auto& [value, name] : renames_) block_.RenameValue(value, name);
}

absl::StatusOr<OpId> Splitter::Combined(OpId stats) {
  if (!reduce_) return stats;
  const Op& local = block_.op(stats);
  OpBuilder builder = MakeOp(block_, "combine_stats", Role::kCommunicate);
  builder.Name(absl::StrCat(block_.name(local), ".combined"))
      .At(Block::Before(whole_))
      .Origin(op_.name)
      .AttrsOf(op_);
  static constexpr const char* kSlots[] = {"Mean", "Variance", "Count"};
  for (int i = 0; i < 3; ++i) {
    const ValueId value = local.out(i);
    builder.In(kSlots[i], {value})
        .Out(kSlots[i], absl::StrCat(block_.name(value), ".combined"));
  }
  return builder.Build();
}

absl::Status Splitter::SplitForward(int64_t saves) {
  OpBuilder builder = Part("channel_stats", ".stats");
  builder.In("X", In("X"));
  if (saves > 0) builder.Attr("saves", saves);
  HT_ASSIGN_OR_RETURN(const OpId stats, builder.Build());
  HT_ASSIGN_OR_RETURN(const OpId combined, Combined(stats));
  const ValueId mean = block_.op(combined).out(0);
  const ValueId variance = block_.op(combined).out(1);
  HT_ASSIGN_OR_RETURN(const OpId apply, Part("scale_bias", ".apply")
                                            .In("X", In("X"))
                                            .In("Scale", In("Scale"))
                                            .In("Bias", In("Bias"))
                                            .In("Mean", mean)
                                            .In("Variance", variance)
                                            .Build());
  ReplaceOutput("Y", block_.op(apply).out(0));
  ReplaceOutput("BatchMean", mean);
  ReplaceOutput("BatchVariance", variance);
  ReplaceOutput("BatchCount", block_.op(combined).out(2));
  Finish();
  return absl::OkStatus();
}

// Rows of all ranks: as the statistics that the gradient reads were made from.
ValueId Splitter::Count() const {
  if (reduce_) return In("BatchCount");
  const Op* stats = DefinedBy(block_, In("BatchMean"), "channel_stats");
  HT_CHECK(stats != nullptr, "a gradient is split before its norm");
  return stats->out(stats->schema->FindOutput("Count"));
}

absl::Status Splitter::SplitGradient() {
  HT_ASSIGN_OR_RETURN(const OpId reduce,
                      Part("bn_grad_reduce", ".sums")
                          .In("X", In("X"))
                          .In("YGrad", In("YGrad"))
                          .In("BatchMean", In("BatchMean"))
                          .In("BatchVariance", In("BatchVariance"))
                          .Build());
  // The local sums are the gradients of this rank.
  ReplaceOutput("ScaleGrad", block_.op(reduce).out(0));
  ReplaceOutput("BiasGrad", block_.op(reduce).out(1));
  HT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> sums,
      Reduced(block_.op(reduce).outputs.all(), ".sums.reduced"));
  HT_ASSIGN_OR_RETURN(const OpId coefficients,
                      Part("bn_grad_coefficients", ".coefficients")
                          .In("Scale", In("Scale"))
                          .In("BatchVariance", In("BatchVariance"))
                          .In("ScaleGradSum", sums[0])
                          .In("BiasGradSum", sums[1])
                          .In("Count", Count())
                          .Build());
  const Op& abc = block_.op(coefficients);
  HT_ASSIGN_OR_RETURN(const OpId apply, Part("bn_grad_apply", ".apply")
                                            .In("X", In("X"))
                                            .In("YGrad", In("YGrad"))
                                            .In("Mean", In("BatchMean"))
                                            .In("A", abc.out(0))
                                            .In("B", abc.out(1))
                                            .In("C0", abc.out(2))
                                            .Build());
  ReplaceOutput("XGrad", block_.op(apply).out(0));
  Finish();
  return absl::OkStatus();
}

// A copy of an op of one output before `reader`, with `x` for its first input.
absl::StatusOr<ValueId> MakeAgain(Block& block, const Op& op, OpId reader,
                                  ValueId x) {
  OpBuilder builder(&block, op.schema);
  const std::string name =
      absl::StrCat(block.name(op.outputs.all()[0]), ".again");
  for (int s = 0; s < op.inputs.slots(); ++s) {
    builder.In(op.schema->inputs()[s].name, s == 0 ? x : op.in(s));
  }
  builder.Name(name)
      .FirstOut(name)
      .At(Block::Before(reader))
      .Role(block.op(reader).role)
      .Why(op.decision)
      .Origin(op.name)
      .Line(op.line)
      .AttrsOf(op)
      .Unique();
  return BuildValue(block, builder);
}

// Every reader of the relu but one of its own role, or but all of those, gets
// norm and relu for itself.
absl::Status MakeForReaders(Block& block, OpId relu_id, bool but_all) {
  const Op& relu = block.op(relu_id);
  const Op& norm = block.op(block.value(relu.in(0)).op());
  const auto uses = block.value(relu.out(0)).uses;
  bool kept = false;
  for (const Use& use : uses) {
    if ((!kept || but_all) && block.op(use.op).role == relu.role) {
      kept = true;
      continue;
    }
    HT_ASSIGN_OR_RETURN(const ValueId normal,
                        MakeAgain(block, norm, use.op, norm.in(0)));
    HT_ASSIGN_OR_RETURN(const ValueId again,
                        MakeAgain(block, relu, use.op, normal));
    block.SetInput(use.op, use.position, again);
  }
  return absl::OkStatus();
}

// Every reader of what the op makes but the first gets one for itself.
absl::Status MakeForOthers(Block& block, OpId id) {
  const Op& op = block.op(id);
  const auto uses = block.value(op.out(0)).uses;
  for (size_t i = 1; i < uses.size(); ++i) {
    HT_ASSIGN_OR_RETURN(const ValueId again,
                        MakeAgain(block, op, uses[i].op, op.in(0)));
    block.SetInput(uses[i].op, uses[i].position, again);
  }
  return absl::OkStatus();
}

// Whether the sums over what `mask` makes are of the norm of x.
bool HasSumsOf(const Block& block, const Op& mask, ValueId x) {
  const auto& uses = block.value(mask.out(0)).uses;
  return absl::c_any_of(uses, [&](const Use& use) {
    return IsOp(block, use.op, "bn_grad_reduce") &&
           InputOf(block.op(use.op), "X") == x;
  });
}

// A block's relu's gradient gets norms, sum and relu for itself.
absl::Status MakeBlockAgain(Block& block, OpId mask) {
  const int out = block.op(mask).schema->FindInput("Out");
  const Op& relu = block.op(block.value(block.op(mask).in(out)).op());
  const Op& add = block.op(block.value(relu.in(0)).op());
  std::vector<ValueId> parts(add.inputs.all().begin(), add.inputs.all().end());
  for (ValueId& part : parts) {
    const Op* norm = DefinedBy(block, part, "scale_bias");
    if (norm == nullptr || !HasSumsOf(block, block.op(mask), norm->in(0))) {
      continue;
    }
    HT_ASSIGN_OR_RETURN(part, MakeAgain(block, *norm, mask, norm->in(0)));
  }
  HT_ASSIGN_OR_RETURN(const ValueId sum, MakeAgain(block, add, mask, parts[0]));
  block.SetInput(block.value(sum).op(), 1, parts[1]);
  HT_ASSIGN_OR_RETURN(const ValueId again, MakeAgain(block, relu, mask, sum));
  block.SetInputSlot(mask, out, {again});
  return absl::OkStatus();
}

// Two gradients of norms whose results were added read one value. Where the
// target makes both images in one pass over it, they stand side by side.
void PairGradients(Block& block, const PatternSet& patterns,
                   absl::Span<const WeighedNorm> norms) {
  absl::flat_hash_map<ValueId, OpId> readers;
  std::vector<int32_t> places;  // once they are asked for
  for (const WeighedNorm& norm : norms) {
    if (!norm.grad.valid()) continue;
    const ValueId gradient = InputOf(block.op(norm.grad), "YGrad");
    const auto [other, is_first] = readers.try_emplace(gradient, norm.grad);
    if (is_first ||
        !patterns.Has("norm_grad_apply_two", block.type(gradient))) {
      continue;
    }
    if (places.empty()) places = block.Numbering();
    OpId before = other->second, after = norm.grad;
    if (places[after.index()] < places[before.index()]) {
      std::swap(before, after);
    }
    block.MoveOp(after, block.After(before));
  }
}

absl::StatusOr<bool> SplitNorms(Block& block, HeldValues& held,
                                const PatternSet& patterns,
                                const proto::Compress& compress) {
  const std::vector<WeighedNorm> norms =
      WeighBatchNorms(block, held, patterns, compress);
  PairGradients(block, patterns, norms);
  for (const WeighedNorm& norm : norms) {
    HT_RETURN_IF_ERROR(Splitter(block, norm.norm, held, norm.sync)
                           .SplitForward(norm.sync ? 0 : norm.saved));
    if (norm.grad.valid()) {
      HT_RETURN_IF_ERROR(
          Splitter(block, norm.grad, held, norm.sync).SplitGradient());
    }
    if (norm.sync) {  // else whole ones have kernels
      for (OpId grad : norm.other_grads) {
        HT_RETURN_IF_ERROR(
            Splitter(block, grad, held, norm.sync).SplitGradient());
      }
    }
    if (norm.relu.valid()) {
      HT_RETURN_IF_ERROR(
          MakeForReaders(block, norm.relu, norm.kept_for_forward));
    }
    if (norm.pool_grad.valid()) {
      HT_RETURN_IF_ERROR(MakeForOthers(block, norm.pool_grad));
    }
  }
  // Once, when both norms of a block are split.
  absl::flat_hash_set<OpId> masks;
  for (const WeighedNorm& norm : norms) {
    if (norm.block_mask.valid() && masks.insert(norm.block_mask).second) {
      HT_RETURN_IF_ERROR(MakeBlockAgain(block, norm.block_mask));
    }
  }
  return !norms.empty();
}

}  // namespace

absl::StatusOr<bool> SplitBatchNorm::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    HeldValues held(*entry);
    HT_ASSIGN_OR_RETURN(const bool split,
                        SplitNorms(entry->block(), held, patterns_, compress_));
    changed |= split;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
