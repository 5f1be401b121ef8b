#include "passes/lower/split_batch_norm.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_schema.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Replaces one norm (or its gradient) by its parts, which stand in its place.
class Splitter {
 public:
  Splitter(Block& block, OpId whole, HeldValues& held)
      : block_(block), whole_(whole), op_(block.op(whole)), held_(held) {}

  absl::Status SplitForward();
  absl::Status SplitGradient();

 private:
  ValueId In(absl::string_view slot) const {
    return op_.in(op_.schema->FindInput(slot));
  }
  // A part computes on what the whole did, for the same reason.
  OpBuilder Part(absl::string_view op_type, absl::string_view suffix);
  // Sums the values over all ranks.
  absl::StatusOr<std::vector<ValueId>> AllReduce(
      absl::Span<const ValueId> values, absl::string_view suffix);
  // `part`'s output takes over the readers and the name of the whole's.
  void TakeOver(absl::string_view output, ValueId part);
  void Finish();

  Block& block_;
  OpId whole_;
  const Op& op_;
  HeldValues& held_;
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

absl::StatusOr<std::vector<ValueId>> Splitter::AllReduce(
    absl::Span<const ValueId> values, absl::string_view suffix) {
  OpBuilder builder = MakeOp(block_, "all_reduce", Role::kCommunicate);
  builder.Name(absl::StrCat(block_.name(op_), suffix))
      .At(Block::Before(whole_))
      .Origin(op_.name)
      .In("X", values)
      .Attr("of", std::string("statistics"));
  for (ValueId value : values) {
    builder.Out("Out", absl::StrCat(block_.name(value), ".reduced"));
  }
  HT_ASSIGN_OR_RETURN(const OpId made, builder.Build());
  const auto outputs = block_.op(made).outputs.all();
  return std::vector<ValueId>(outputs.begin(), outputs.end());
}

void Splitter::TakeOver(absl::string_view output, ValueId part) {
  const ValueId whole = op_.out(op_.schema->FindOutput(output));
  renames_.emplace_back(part, std::string(block_.name(whole)));
  ReplaceValue(block_, whole, part, held_);
}

void Splitter::Finish() {
  block_.EraseOp(whole_);
  for (const auto& [value, name] : renames_) block_.RenameValue(value, name);
}

absl::Status Splitter::SplitForward() {
  HT_ASSIGN_OR_RETURN(const OpId stats, Part("channel_stats", ".stats")
                                            .In("X", In("X"))
                                            .In("Shift", In("Mean"))
                                            .Build());
  HT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> sums,
      AllReduce(block_.op(stats).outputs.all(), ".stats.reduced"));
  HT_ASSIGN_OR_RETURN(const OpId finalize, Part("bn_finalize", ".finalize")
                                               .In("Sum", sums[0])
                                               .In("SquaredSum", sums[1])
                                               .In("Count", sums[2])
                                               .In("Shift", In("Mean"))
                                               .Build());
  const ValueId mean = block_.op(finalize).out(0);
  const ValueId variance = block_.op(finalize).out(1);
  HT_ASSIGN_OR_RETURN(const OpId apply, Part("scale_bias", ".apply")
                                            .In("X", In("X"))
                                            .In("Scale", In("Scale"))
                                            .In("Bias", In("Bias"))
                                            .In("Mean", mean)
                                            .In("Variance", variance)
                                            .Build());
  TakeOver("Y", block_.op(apply).out(0));
  TakeOver("BatchMean", mean);
  TakeOver("BatchVariance", variance);
  TakeOver("BatchCount", sums[2]);
  Finish();
  return absl::OkStatus();
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
  TakeOver("ScaleGrad", block_.op(reduce).out(0));
  TakeOver("BiasGrad", block_.op(reduce).out(1));
  HT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> sums,
      AllReduce(block_.op(reduce).outputs.all(), ".sums.reduced"));
  HT_ASSIGN_OR_RETURN(const OpId coefficients,
                      Part("bn_grad_coefficients", ".coefficients")
                          .In("Scale", In("Scale"))
                          .In("BatchMean", In("BatchMean"))
                          .In("BatchVariance", In("BatchVariance"))
                          .In("ScaleGradSum", sums[0])
                          .In("BiasGradSum", sums[1])
                          .In("Count", In("BatchCount"))
                          .Build());
  const Op& abc = block_.op(coefficients);
  HT_ASSIGN_OR_RETURN(const OpId apply, Part("bn_grad_apply", ".apply")
                                            .In("X", In("X"))
                                            .In("YGrad", In("YGrad"))
                                            .In("A", abc.out(0))
                                            .In("B", abc.out(1))
                                            .In("C0", abc.out(2))
                                            .Build());
  TakeOver("XGrad", block_.op(apply).out(0));
  Finish();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> SplitBatchNorm::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    Block& block = entry->block();
    HeldValues held(*entry);
    for (OpId id : OpsOfType(block, "sync_batch_norm")) {
      HT_RETURN_IF_ERROR(Splitter(block, id, held).SplitForward());
      changed = true;
    }
    for (OpId id : OpsOfType(block, "sync_batch_norm_grad")) {
      HT_RETURN_IF_ERROR(Splitter(block, id, held).SplitGradient());
      changed = true;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
