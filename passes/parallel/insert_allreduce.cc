#include "passes/parallel/insert_allreduce.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/differentiate/combine_losses.h"
#include "passes/parallel/gradients.h"
#include "passes/parallel/move_behind.h"
#include "passes/parallel/totals.h"
#include "passes/precision/cast.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

class Inserter {
 public:
  Inserter(Block& block, const proto::Dist& dist, DType low)
      : block_(block), dist_(dist), low_(low) {}

  // Reduces what `gradient` is made of, and returns the gradient then.
  absl::StatusOr<ValueId> Insert(const ParameterGradient& gradient);

 private:
  // Right behind the op that makes it.
  absl::StatusOr<ValueId> Reduce(ValueId local);
  absl::StatusOr<ValueId> Cast(ValueId value, DType to);
  // Parameters may share a local gradient: then it is reduced once.
  absl::StatusOr<ValueId> ReduceOnce(ValueId local);
  absl::StatusOr<ValueId> ReduceWide(const ParameterGradient& gradient);

  Block& block_;
  const proto::Dist& dist_;
  DType low_;
  absl::flat_hash_map<ValueId, ValueId> wide_;  // by the low one
};

absl::StatusOr<ValueId> Inserter::Reduce(ValueId local) {
  const OpId producer = block_.value(local).op();
  if (!producer.valid()) {
    return CompilerBug("gradient ", block_.name(local),
                       " is not made by an op: append-backward has to assign");
  }
  OpBuilder reduction = MakeOp(block_, "all_reduce", Role::kCommunicate);
  reduction.At(block_.After(producer))
      .Why(FixedBySchema(block_.dtype(local)))
      .In("X", {local})
      .Attr("of", std::string("gradient"))
      .Attr("gradient_scale", std::string(ScalesBefore(dist_) ? "pre" : "none"))
      .Out("Out", block_.program().names().Append(block_.value(local).name,
                                                  ".reduced"));
  if (dist_.has_gradient_predivide_factor()) {
    reduction.Attr("predivide", dist_.gradient_predivide_factor());
  }
  if (dist_.reduce() == "exact_order") {
    reduction.Attr("order", std::string("ranks"));
  }
  if (HasVirtualShards(dist_)) reduction.Attr("order", std::string("tree"));
  if (dist_.delay_allreduce()) reduction.Attr("delayed", true);
  return BuildValue(block_, reduction);
}

absl::StatusOr<ValueId> Inserter::Cast(ValueId value, DType to) {
  OpBuilder cast = MakeOp(block_, "cast", Role::kCommunicate);
  cast.At(block_.After(block_.value(value).op()))
      .Why(FixedBySchema(to))
      .In("X", value)
      .Attr("to", to)
      .Out("Out", CastName(block_, value, to));
  return BuildValue(block_, cast);
}

absl::StatusOr<ValueId> Inserter::ReduceOnce(ValueId local) {
  const ValueId reduced = ReducedOf(block_, local);
  if (reduced.valid()) return reduced;
  return Reduce(local);
}

// The up-cast goes before the reduction; a low parameter's gradient has none.
absl::StatusOr<ValueId> Inserter::ReduceWide(
    const ParameterGradient& gradient) {
  ValueId& known = wide_[gradient.local];
  if (!known.valid()) {
    ValueId wide = gradient.wide;
    if (IsLow(block_.dtype(wide))) {
      HT_ASSIGN_OR_RETURN(wide, Cast(wide, DType::kF32));
    }
    HT_ASSIGN_OR_RETURN(known, Reduce(wide));
  }
  return known;
}

absl::StatusOr<ValueId> Inserter::Insert(const ParameterGradient& gradient) {
  const bool is_low = IsLow(block_.dtype(gradient.local));
  // Shards are summed in f32, on whichever rank.
  if (is_low && (dist_.allreduce_always_fp32() || HasVirtualShards(dist_))) {
    return ReduceWide(gradient);
  }
  if (!is_low && dist_.fp16_allreduce()) {
    ValueId& known = wide_[gradient.local];
    if (!known.valid()) {
      HT_ASSIGN_OR_RETURN(const ValueId low, Cast(gradient.local, low_));
      HT_ASSIGN_OR_RETURN(const ValueId reduced, Reduce(low));
      HT_ASSIGN_OR_RETURN(known, Cast(reduced, DType::kF32));
    }
    return known;
  }
  HT_ASSIGN_OR_RETURN(const ValueId reduced, ReduceOnce(gradient.local));
  // Only the up-cast reads the reduced value: a backward op that reads the
  // local one needs this rank's.
  if (gradient.wide == gradient.local) return reduced;
  block_.SetInput(block_.value(gradient.wide).op(), 0, reduced);
  return gradient.wide;
}

// The reductions, in their order, behind all of backward, and what reads them
// behind them.
void Delay(Block& block) {
  const std::vector<OpId> reductions = ReductionsOf(block, "gradient");
  const OpId reader = MoveReadersBehind(block, reductions);
  for (OpId id : reductions) {
    block.MoveOp(id, reader.valid() ? Block::Before(reader) : Block::End());
  }
}

// Of parts of the loss that have a scaler each: on how many ranks a part sent
// something back that is not finite.
absl::StatusOr<bool> ReduceVerdicts(const Program& program, Entry& train,
                                    const proto::Dist& dist) {
  Block& block = train.block();
  OpBuilder reduction = MakeOp(block, "all_reduce", Role::kCommunicate);
  std::vector<std::string> names;
  const int parts = static_cast<int>(program.loss.parts.size());
  for (int i = 0; i < parts; ++i) {
    const ValueId local = NotFiniteOf(block, i);
    names.push_back(NotFiniteResult(i));
    if (!local.valid() || train.FindResult(names.back()).valid()) return false;
    reduction.In("X", {local}).Out("Out", names.back());
  }
  if (names.empty()) return false;
  reduction.Name("totals.parts").Attr("of", std::string("totals"));
  if (HasVirtualShards(dist)) reduction.Attr("order", std::string("tree"));
  HT_ASSIGN_OR_RETURN(const OpId made, reduction.Build());
  for (size_t i = 0; i < names.size(); ++i) {
    train.results().push_back({names[i], block.op(made).outputs.all()[i]});
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> InsertAllreduce::Run(Program& program) {
  bool changed = false;
  if (Entry* train = program.FindEntry(kTrainEntry)) {
    Block& block = train->block();
    std::vector<ValueId> values;
    Inserter inserter(block, dist_, low_);
    for (const ParameterGradient& gradient : FindGradients(*train)) {
      values.push_back(gradient.value);
      if (gradient.reduced.valid()) continue;
      HT_ASSIGN_OR_RETURN(values.back(), inserter.Insert(gradient));
      changed = true;
    }
    SetGradients(values, train);
    if (changed && dist_.delay_allreduce()) Delay(block);
  }
  for (const auto& entry : program.entries()) {
    if (entry->name() != kTrainEntry && entry->name() != kEvalEntry) continue;
    HT_ASSIGN_OR_RETURN(const bool added, InsertTotals(program, *entry, dist_));
    changed |= added;
  }
  if (Entry* train = program.FindEntry(kTrainEntry)) {
    HT_ASSIGN_OR_RETURN(const bool added,
                        ReduceVerdicts(program, *train, dist_));
    changed |= added;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
