#include "passes/update/gradient_merge.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/rewrite/rewrite.h"
#include "passes/update/micro_batch_entry.h"
#include "passes/update/running_statistics.h"

namespace halftone {
namespace passes {
namespace {

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
  HT_ASSIGN_OR_RETURN(
      MicroBatchEntry micro_batch,
      MicroBatchEntry::Add(
          program, train->block(),
          absl::StrCat("dist.gradient_merge.k_steps ", merged_steps_),
          IsSummed));
  Entry& accumulate = micro_batch.entry();
  Merger merger(program, *train, accumulate, MergeScale(merged_steps_));
  for (OpId id : OpsOfType(train->block(), "all_reduce")) {
    if (!IsSummed(train->block().op(id))) continue;
    const int members =
        static_cast<int>(train->block().op(id).inputs.all().size());
    for (int i = 0; i < members; ++i) {
      const ValueId member = train->block().op(id).inputs.all()[i];
      // The host asks for the end once a step.
      if (!train->block().value(member).op().valid()) continue;
      HT_RETURN_IF_ERROR(merger.Merge(id, i, micro_batch.Map(member)));
    }
  }
  HT_RETURN_IF_ERROR(AccumulateRunningStatistics(accumulate));
  return true;
}

}  // namespace passes
}  // namespace halftone
