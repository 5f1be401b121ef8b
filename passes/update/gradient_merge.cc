#include "passes/update/gradient_merge.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/rewrite/rewrite.h"
#include "passes/update/running_statistics.h"

namespace halftone {
namespace passes {
namespace {

// What is added up over the micro-batches of a step.
bool IsMerged(const Op& op) {
  return IsReduction(op, "gradient") || IsReduction(op, "totals");
}

// Train's ops but for those reductions and what depends on them.
class Copier {
 public:
  Copier(const Block& from, Block& to)
      : from_(from), to_(to), map_(from.value_limit()) {}

  void Run() {
    for (ValueId feed : from_.Feeds()) {
      if (!absl::StartsWith(from_.name(feed), "@")) Map(feed);
    }
    for (OpId id : from_.ops()) {
      const Op& op = from_.op(id);
      if (!IsMerged(op)) CopyOp(op);
    }
  }
  // Invalid: it depends on a reduction.
  ValueId Map(ValueId value) {
    ValueId& mapped = map_[value.index()];
    if (mapped.valid()) return mapped;
    const Value& v = from_.value(value);
    if (v.definition == Definition::kFeed) {
      mapped = to_.AddFeed(from_.name(value), from_.type(value));
    } else if (v.definition == Definition::kConstant) {
      mapped = to_.ConstantValue(ConstantId(v.index));
    } else if (v.definition == Definition::kCell) {
      mapped = to_.CellValue(v.cell());
    }
    return mapped;
  }

 private:
  void CopyOp(const Op& op) {
    for (ValueId input : op.inputs.all()) {
      if (!Map(input).valid()) return;
    }
    const OpId id = to_.CopyOp(
        op, from_, [this](ValueId value) { return map_[value.index()]; });
    const auto outputs = op.outputs.all();
    for (size_t i = 0; i < outputs.size(); ++i) {
      map_[outputs[i].index()] = to_.op(id).outputs.all()[i];
    }
  }

  const Block& from_;
  Block& to_;
  std::vector<ValueId> map_;  // by value id in `from`
};

class Merger {
 public:
  Merger(Program& program, Entry& train, Entry& accumulate, double scale)
      : program_(program),
        train_(train),
        accumulate_(accumulate),
        scale_(scale) {}

  // Member `i` of a reduction in train; `local` is it in `accumulate`.
  absl::Status Merge(OpId reduction, int i, ValueId local);

 private:
  absl::StatusOr<CellId> SumCell(ValueId member);
  // Behind what makes `x`: its memory is free again then.
  absl::StatusOr<ValueId> Accumulate(Block& block, ValueId x, ValueId sum,
                                     double scale, DType dtype,
                                     absl::string_view suffix);

  Program& program_;
  Entry& train_;
  Entry& accumulate_;
  double scale_;
};

absl::StatusOr<CellId> Merger::SumCell(ValueId member) {
  const Block& block = train_.block();
  Cell cell;
  cell.name = block.UniqueValueName(absl::StrCat(block.name(member), ".sum"));
  if (program_.FindCell(cell.name).valid()) {
    return ModelError(program_.file, ": ", cell.name,
                      " is the name of the sum of ", block.name(member),
                      " over micro-batches; rename the model's value");
  }
  cell.type = block.type(member);
  cell.type.dtype = DType::kF32;
  cell.kind = CellKind::kAccumulator;
  cell.init.kind = Initializer::Kind::kConstant;
  cell.commit = Commit::kAlways;
  cell.spread = Spread::kPerRank;
  return program_.AddCell(std::move(cell)).id;
}

absl::StatusOr<ValueId> Merger::Accumulate(Block& block, ValueId x, ValueId sum,
                                           double scale, DType dtype,
                                           absl::string_view suffix) {
  OpBuilder op = MakeOp(block, "accumulate", Role::kLossScale);
  op.At(block.After(block.value(x).op()))
      .In("X", x)
      .In("Sum", sum)
      .Bind("TOut", dtype)
      .Out("Out", absl::StrCat(block.name(x), suffix));
  if (scale != 1) op.Attr("scale", scale);
  return BuildValue(block, op);
}

absl::Status Merger::Merge(OpId reduction, int i, ValueId local) {
  Block& block = train_.block();
  const ValueId member = block.op(reduction).inputs.all()[i];
  const bool gradient = IsReduction(block.op(reduction), "gradient");
  HT_ASSIGN_OR_RETURN(const CellId cell, SumCell(member));
  Block& before = accumulate_.block();
  HT_ASSIGN_OR_RETURN(const ValueId added,
                      Accumulate(before, local, before.CellValue(cell), 1,
                                 DType::kF32, ".added"));
  accumulate_.commits().push_back({cell, added});

  const ValueId sum = block.CellValue(cell);
  HT_ASSIGN_OR_RETURN(const ValueId merged,
                      Accumulate(block, member, sum, gradient ? scale_ : 1,
                                 block.dtype(member), ".merged"));
  block.SetInput(reduction, i, merged);
  OpBuilder clear = MakeOp(block, "fill_zeros_like", Role::kLossScale);
  clear.At(block.After(block.value(merged).op()))
      .In("X", sum)
      .Out("Out", absl::StrCat(block.name(member), ".cleared"));
  HT_ASSIGN_OR_RETURN(const ValueId cleared, BuildValue(block, clear));
  train_.commits().push_back({cell, cleared});
  return absl::OkStatus();
}

}  // namespace

double MergeScale(int64_t merged_steps) {
  double scale = 1;
  for (int64_t n = 1; n < merged_steps; n *= 2) scale /= 2;
  return scale;
}

absl::StatusOr<bool> GradientMerge::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (merged_steps_ == 1 || train == nullptr || train->gradients().empty() ||
      program.FindEntry(kAccumulateEntry) != nullptr) {
    return false;
  }
  if (!program.loss.denominators.empty()) {
    return ModelError(
        program.file, ": dist.gradient_merge.k_steps ", merged_steps_,
        ": the loss has the denominator ", program.loss.denominators[0],
        ", whose total over a step is needed before its first micro-batch; "
        "leave gradient_merge or the loss's denominators out");
  }
  Entry& accumulate = program.AddEntry(kAccumulateEntry);
  Copier copier(train->block(), accumulate.block());
  copier.Run();
  Merger merger(program, *train, accumulate, MergeScale(merged_steps_));
  for (OpId id : OpsOfType(train->block(), "all_reduce")) {
    if (!IsMerged(train->block().op(id))) continue;
    const int members =
        static_cast<int>(train->block().op(id).inputs.all().size());
    for (int i = 0; i < members; ++i) {
      const ValueId member = train->block().op(id).inputs.all()[i];
      // The host asks for the end once a step.
      if (!train->block().value(member).op().valid()) continue;
      HT_RETURN_IF_ERROR(merger.Merge(id, i, copier.Map(member)));
    }
  }
  HT_RETURN_IF_ERROR(AccumulateRunningStatistics(accumulate));
  return true;
}

}  // namespace passes
}  // namespace halftone
