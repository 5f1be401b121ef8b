#include "passes/parallel/average_entry.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/place.h"
#include "passes/differentiate/local_count.h"
#include "passes/parallel/buckets.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

bool IsAveraged(const Cell& cell) {
  return cell.kind == CellKind::kParameter ||
         cell.kind == CellKind::kStatistic || cell.kind == CellKind::kAverage;
}

class Averager {
 public:
  Averager(Program& program, const Entry& train, Entry& average)
      : program_(program),
        train_(train),
        entry_(average),
        block_(average.block()) {}

  absl::Status Run(const proto::Dist& dist);

 private:
  struct Member {
    CellId cell, snapshot;
    ValueId change, sum;
  };
  absl::StatusOr<CellId> Snapshot(CellId cell);
  absl::Status AddChange(CellId cell);
  absl::Status Reduce(const proto::Dist& dist);
  absl::Status TakeOver(const Member& member, ValueId ranks);
  // The low copies of a parameter follow it.
  absl::Status TakeOverLow(CellId parameter, ValueId averaged);
  absl::StatusOr<ValueId> Cast(ValueId value, DType to,
                               const std::string& name);
  absl::StatusOr<ValueId> Two(absl::string_view op, ValueId x, ValueId y,
                              const std::string& name);
  absl::StatusOr<ValueId> Sum(ValueId value, absl::string_view name);

  Program& program_;
  const Entry& train_;
  Entry& entry_;
  Block& block_;
  std::vector<Member> members_;
  absl::flat_hash_map<CellId, std::vector<CellId>> low_cells_;  // by parameter
};

absl::StatusOr<ValueId> Averager::Cast(ValueId value, DType to,
                                       const std::string& name) {
  if (block_.dtype(value) == to) return value;
  OpBuilder cast = MakeOp(block_, "cast", Role::kOptimize);
  cast.In("X", value).Attr("to", to).Out("Out", name);
  return BuildValue(block_, cast);
}

absl::StatusOr<ValueId> Averager::Two(absl::string_view op, ValueId x,
                                      ValueId y, const std::string& name) {
  OpBuilder two = MakeOp(block_, op, Role::kOptimize);
  two.In("X", x).In("Y", y).Out("Out", name);
  return BuildValue(block_, two);
}

absl::StatusOr<CellId> Averager::Snapshot(CellId cell) {
  const Cell& of = program_.cell(cell);
  Cell snapshot;
  snapshot.name = absl::StrCat(of.name, ".snapshot");
  if (program_.FindCell(snapshot.name).valid() ||
      train_.block().FindValue(snapshot.name).valid()) {
    return ModelError(PlaceOf(program_, of.line), of.name,
                      ": what ranks last averaged of it is called ",
                      snapshot.name,
                      ", and so is something in the model; rename that");
  }
  snapshot.type = of.type;
  snapshot.type.dtype = DType::kF32;
  // No replay of a step wants it back: as sums over micro-batches.
  snapshot.kind = CellKind::kAccumulator;
  snapshot.init.kind = Initializer::Kind::kNone;
  snapshot.commit = Commit::kAlways;
  snapshot.spread = Spread::kPerRank;
  snapshot.of = cell;
  return program_.AddCell(std::move(snapshot)).id;
}

absl::Status Averager::AddChange(CellId cell) {
  Member member;
  member.cell = cell;
  HT_ASSIGN_OR_RETURN(member.snapshot, Snapshot(cell));
  const std::string name = program_.cell(cell).name;
  HT_ASSIGN_OR_RETURN(
      const ValueId now,
      Cast(block_.CellValue(cell), DType::kF32, absl::StrCat(name, ".wide")));
  HT_ASSIGN_OR_RETURN(member.change,
                      Two("elementwise_sub", block_.CellValue(member.snapshot),
                          now, absl::StrCat(name, ".change")));
  members_.push_back(member);
  return absl::OkStatus();
}

absl::Status Averager::Reduce(const proto::Dist& dist) {
  std::vector<BucketItem> items;
  for (const Member& member : members_) {
    const TensorType& type = block_.type(member.change);
    items.push_back({type.dtype, type.Elements().coefficient() *
                                     static_cast<int64_t>(SizeOf(type.dtype))});
  }
  int number = 0;
  for (const Bucket& bucket :
       AssignBuckets(items, dist, /*join_stranded=*/true)) {
    OpBuilder reduction = MakeOp(block_, "all_reduce", Role::kCommunicate);
    reduction.Name(absl::StrCat("changes.", number))
        .Attr("of", std::string("parameters"))
        .Attr("bucket", int64_t{number});
    ++number;
    for (int item : bucket.items) {
      const ValueId change = members_[item].change;
      reduction.In("X", {change})
          .Out("Out", absl::StrCat(block_.name(change), ".sum"));
    }
    HT_ASSIGN_OR_RETURN(const OpId made, reduction.Build());
    for (size_t i = 0; i < bucket.items.size(); ++i) {
      members_[bucket.items[i]].sum = block_.op(made).outputs.all()[i];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Averager::Sum(ValueId value, absl::string_view name) {
  OpBuilder sum = MakeOp(block_, "all_reduce", Role::kCommunicate);
  sum.In("X", {value}).Attr("of", std::string("parameters")).Out("Out", name);
  return BuildValue(block_, sum);
}

absl::Status Averager::TakeOverLow(CellId parameter, ValueId averaged) {
  const auto found = low_cells_.find(parameter);
  if (found == low_cells_.end()) return absl::OkStatus();
  for (CellId id : found->second) {
    const Cell& cell = program_.cell(id);
    HT_ASSIGN_OR_RETURN(
        const ValueId low,
        Cast(averaged, cell.type.dtype, absl::StrCat(cell.name, ".averaged")));
    entry_.commits().push_back({cell.id, low});
  }
  return absl::OkStatus();
}

absl::Status Averager::TakeOver(const Member& member, ValueId ranks) {
  const Cell& cell = program_.cell(member.cell);
  const std::string change(block_.name(member.change));
  HT_ASSIGN_OR_RETURN(
      const ValueId mean,
      Two("elementwise_div", member.sum, ranks, absl::StrCat(change, ".mean")));
  const std::string name = absl::StrCat(cell.name, ".averaged");
  const bool low = IsLow(cell.type.dtype);
  HT_ASSIGN_OR_RETURN(ValueId averaged,
                      Two("elementwise_sub", block_.CellValue(member.snapshot),
                          mean, low ? absl::StrCat(name, ".f32") : name));
  HT_ASSIGN_OR_RETURN(averaged, Cast(averaged, cell.type.dtype, name));
  entry_.commits().push_back({cell.id, averaged});
  HT_RETURN_IF_ERROR(TakeOverLow(cell.id, averaged));
  // Of a low cell what it holds, not what was rounded to it.
  HT_ASSIGN_OR_RETURN(const ValueId snapshot,
                      Cast(averaged, DType::kF32, absl::StrCat(name, ".wide")));
  entry_.commits().push_back({member.snapshot, snapshot});
  return absl::OkStatus();
}

absl::Status Averager::Run(const proto::Dist& dist) {
  for (int i = 0; i < program_.num_cells(); ++i) {
    const Cell& cell = program_.cell(CellId(i));
    if (cell.kind == CellKind::kDerived) low_cells_[cell.of].push_back(cell.id);
  }
  for (const CommitStatement& commit : train_.commits()) {
    if (!IsAveraged(program_.cell(commit.cell))) continue;
    HT_RETURN_IF_ERROR(AddChange(commit.cell));
  }
  HT_RETURN_IF_ERROR(Reduce(dist));
  HT_ASSIGN_OR_RETURN(const ValueId weight, RankWeight(block_));
  HT_ASSIGN_OR_RETURN(const ValueId ranks, Sum(weight, "@ranks"));
  for (const Member& member : members_) {
    HT_RETURN_IF_ERROR(TakeOver(member, ranks));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddAverageEntry(Program& program, const Entry& train,
                             const proto::Dist& dist) {
  Entry& average = program.AddEntry(kAverageEntry);
  return Averager(program, train, average).Run(dist);
}

}  // namespace passes
}  // namespace halftone
