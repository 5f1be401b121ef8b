#include "passes/differentiate/local_count.h"

#include <string>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"
#include "passes/precision/cast.h"

namespace halftone {
namespace passes {
namespace {

OpBuilder Counter(Block& block, absl::string_view op) {
  Decision decision;
  decision.precision = DType::kF32;
  decision.reason = Reason::kSchema;
  return std::move(
      OpBuilder(&block, op).Role(Role::kLossScale).Why(decision).Unique());
}

absl::StatusOr<ValueId> Find(const Program& program, const Block& block,
                             const std::string& name) {
  const ValueId value = block.FindValue(name);
  if (value.valid()) return value;
  return ModelError(program.file, ": loss: no value is called ", name);
}

Block::Position Behind(const Block& block, ValueId value) {
  const OpId op = block.value(value).op();
  return op.valid() ? block.After(op) : Block::Before(block.first());
}

// The sum of a mask of any dtype, in f32.
absl::StatusOr<OpId> SumOf(Block& block, ValueId mask) {
  if (!IsFloat(block.dtype(mask))) {
    HT_ASSIGN_OR_RETURN(const OpId cast,
                        Counter(block, "cast")
                            .In("X", mask)
                            .Attr("to", DType::kF32)
                            .Out("Out", CastName(block, mask, DType::kF32))
                            .At(Behind(block, mask))
                            .Build());
    mask = block.op(cast).out(0);
  }
  return Counter(block, "reduce_sum")
      .In("X", mask)
      .Bind("TOut", DType::kF32)
      .Out("Out", kLocalCount)
      .At(Behind(block, mask))
      .Build();
}

}  // namespace

ValueId SamplesFeed(const Block& block) {
  for (ValueId feed : block.Feeds()) {
    const TensorType& type = block.type(feed);
    if (type.rank() > 0 && !type.dims[0].is_constant()) return feed;
  }
  return ValueId();
}

absl::StatusOr<ValueId> RankWeight(Block& block) {
  static constexpr char kName[] = "@rank_weight";
  const ValueId known = block.FindValue(kName);
  if (known.valid()) return known;
  HT_ASSIGN_OR_RETURN(const OpId made, Counter(block, "fill_constant")
                                           .Attr("dtype", DType::kF32)
                                           .Attr("value", 1.0)
                                           .Out("Out", kName)
                                           .At(Block::Before(block.first()))
                                           .Build());
  return block.op(made).out(0);
}

absl::StatusOr<ValueId> LocalCount(const Program& program, Block& block) {
  const ValueId known = block.FindValue(kLocalCount);
  if (known.valid()) return known;
  const LossInfo& loss = program.loss;
  if (!loss.mask.empty()) {
    HT_ASSIGN_OR_RETURN(const ValueId mask, Find(program, block, loss.mask));
    HT_ASSIGN_OR_RETURN(const OpId sum, SumOf(block, mask));
    return block.op(sum).out(0);
  }
  HT_ASSIGN_OR_RETURN(
      ValueId counted,
      Find(program, block, loss.mean_over.empty() ? loss.var : loss.mean_over));
  // Without a sample axis it says nothing of this rank's share: samples do.
  const ValueId samples = SamplesFeed(block);
  const bool by_samples =
      block.type(counted).Elements().is_constant() && samples.valid();
  if (by_samples) counted = samples;
  OpBuilder count = Counter(block, "element_count");
  count.In("X", counted).Out("Out", kLocalCount).At(Behind(block, counted));
  if (by_samples) count.Attr("axis", int64_t{0});
  HT_ASSIGN_OR_RETURN(const OpId made, count.Build());
  return block.op(made).out(0);
}

}  // namespace passes
}  // namespace halftone
