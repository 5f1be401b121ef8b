#include "passes/update/average_parameters.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/place.h"
#include "passes/precision/cast.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

struct Member {
  CellId parameter, average;
  ValueId next;  // of the parameter
};

absl::StatusOr<CellId> AverageCell(Program& program, const Block& train,
                                   CellId parameter) {
  const Cell& p = program.cell(parameter);
  Cell average = p;
  average.name = absl::StrCat(p.name, kAverageSuffix);
  if (program.FindCell(average.name).valid() ||
      train.FindValue(average.name).valid()) {
    return ModelError(PlaceOf(program, p.line), "param ", p.name,
                      ": its average is called ", average.name,
                      ", and so is something in the model; rename that");
  }
  average.type.dtype = DType::kF32;
  average.kind = CellKind::kAverage;
  average.trainable = false;
  average.of = parameter;
  return program.AddCell(std::move(average)).id;
}

absl::Status Update(Entry& train, const proto::Ema& ema,
                    absl::Span<const Member> members) {
  Block& block = train.block();
  const Program& program = block.program();
  HT_ASSIGN_OR_RETURN(const ValueId applied, WellKnownValue(&block, kApplied));
  OpBuilder op = MakeOp(block, "ema", Role::kOptimize);
  // Before the clock that it reads ticks.
  op.Name("ema")
      .At(Block::Before(
          block.value(train.FindResult(absl::StrCat(kApplied, kNextSuffix)))
              .op()))
      .In("Applied", applied)
      .In("FoundInf", train.FindResult(kFoundInf))
      .Attr("decay", ema.decay());
  if (ema.warmup()) op.Attr("warmup", true);
  for (const Member& member : members) {
    op.In("Average", block.CellValue(member.average))
        .In("Param", member.next)
        .Out("AverageOut",
             absl::StrCat(program.cell(member.average).name, kNextSuffix));
  }
  HT_ASSIGN_OR_RETURN(const OpId made, op.Build());
  for (size_t i = 0; i < members.size(); ++i) {
    train.commits().push_back(
        {members[i].average, block.op(made).outputs.all()[i]});
  }
  return absl::OkStatus();
}

// What eval reads of the parameter it reads of the average.
absl::Status ReadAverage(Entry& eval, const Member& member, HeldValues& held) {
  Block& block = eval.block();
  const ValueId old = block.FindCellValue(member.parameter);
  if (!old.valid()) return absl::OkStatus();
  const Program& program = block.program();
  const std::string& parameter = program.cell(member.parameter).name;
  const std::string& name = program.cell(member.average).name;
  ValueId average = block.CellValue(member.average);
  if (IsLow(block.dtype(old))) {
    HT_ASSIGN_OR_RETURN(
        average, AddCast(block, average, block.dtype(old), Reason::kSchema,
                         NameId(), Block::Before(block.first())));
  }
  ReplaceValue(block, old, average, held);
  // A cast is called after what it reads; train's is of the parameter.
  for (const Use& use : block.value(average).uses) {
    const Op& reader = block.op(use.op);
    if (reader.schema->name() != "cast") continue;
    const std::string cast(block.name(reader.out(0)));
    absl::string_view suffix = cast;
    if (!absl::ConsumePrefix(&suffix, parameter)) continue;
    block.RenameValue(reader.out(0),
                      block.UniqueValueName(absl::StrCat(name, suffix)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> AverageParameters::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || CountOfType(train->block(), "ema") > 0) {
    return false;
  }
  std::map<DType, std::vector<Member>> by_dtype;
  for (const CommitStatement& commit : train->commits()) {
    const Cell& cell = program.cell(commit.cell);
    if (cell.kind != CellKind::kParameter) continue;
    by_dtype[cell.type.dtype].push_back({commit.cell, CellId(), commit.value});
  }
  if (by_dtype.empty()) return false;
  Entry* eval = program.FindEntry(kEvalEntry);
  for (auto& [dtype, members] : by_dtype) {
    for (Member& member : members) {
      HT_ASSIGN_OR_RETURN(member.average, AverageCell(program, train->block(),
                                                      member.parameter));
    }
    HT_RETURN_IF_ERROR(Update(*train, ema_, members));
    if (eval == nullptr) continue;
    HeldValues held(*eval);
    for (const Member& member : members) {
      HT_RETURN_IF_ERROR(ReadAverage(*eval, member, held));
    }
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
