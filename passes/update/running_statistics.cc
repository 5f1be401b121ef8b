#include "passes/update/running_statistics.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/rewrite/rewrite.h"
#include "passes/update/norm_statistics.h"

namespace halftone {
namespace passes {
namespace {

// One update after the other.
class Chain {
 public:
  Chain(Entry& entry, ValueId found_inf)
      : entry_(entry), block_(entry.block()), found_inf_(found_inf) {}

  // From now on the cell's value is this.
  void Start(CellId cell, ValueId value) { latest_[cell] = value; }
  absl::Status Add(const NormStatistics& norm, ValueId batch_mean,
                   ValueId batch_variance, AttrValue momentum,
                   const std::string& name);
  const std::vector<CellId>& cells() const { return cells_; }
  ValueId Latest(CellId cell) const { return latest_.at(cell); }
  // `to` takes over what came of `cell`.
  void Commit(CellId cell, CellId to) {
    entry_.commits().push_back({to, Latest(cell)});
  }
  void NameAll() {
    for (CellId cell : cells_) {
      block_.RenameValue(Latest(cell),
                         block_.UniqueValueName(absl::StrCat(
                             block_.program().cell(cell).name, kNextSuffix)));
    }
  }

 private:
  ValueId Current(CellId cell) {
    const auto it = latest_.try_emplace(cell, block_.CellValue(cell)).first;
    if (touched_.try_emplace(cell, true).second) cells_.push_back(cell);
    return it->second;
  }

  Entry& entry_;
  Block& block_;
  ValueId found_inf_;
  // A norm that is applied several times updates its cells several times.
  absl::flat_hash_map<CellId, ValueId> latest_;
  absl::flat_hash_map<CellId, bool> touched_;
  std::vector<CellId> cells_;
};

absl::Status Chain::Add(const NormStatistics& norm, ValueId batch_mean,
                        ValueId batch_variance, AttrValue momentum,
                        const std::string& name) {
  OpBuilder update = MakeOp(block_, "running_stats", Role::kOptimize);
  update.Name(name)
      .In("OldMean", Current(norm.mean))
      .In("OldVariance", Current(norm.variance))
      .In("BatchMean", batch_mean)
      .In("BatchVariance", batch_variance)
      .In("FoundInf", found_inf_)
      .Attr("momentum", std::move(momentum));
  HT_ASSIGN_OR_RETURN(const OpId made, update.Build());
  latest_[norm.mean] = block_.op(made).out(0);
  latest_[norm.variance] = block_.op(made).out(1);
  return absl::OkStatus();
}

absl::Status AddNorms(const Block& block, Chain* chain) {
  for (const NormStatistics& norm : FindNormStatistics(block)) {
    const Op& op = block.op(norm.norm);
    HT_RETURN_IF_ERROR(chain->Add(norm, norm.batch_mean, norm.batch_variance,
                                  GetAttr(op, "momentum"),
                                  absl::StrCat(block.name(op), ".running")));
  }
  return absl::OkStatus();
}

// Before the verdict nothing is rejected.
absl::StatusOr<ValueId> NotRejected(Block& block) {
  OpBuilder no = MakeOp(block, "fill_constant", Role::kOptimize);
  no.Attr("dtype", DType::kBool).Out("Out", "@not_rejected");
  return BuildValue(block, no);
}

CellId AddPending(Program& program, CellId statistic) {
  const Cell& of = program.cell(statistic);
  Cell cell;
  cell.name = absl::StrCat(of.name, ".pending");
  cell.type = of.type;
  cell.kind = CellKind::kAccumulator;
  cell.init.kind = Initializer::Kind::kNone;
  cell.commit = Commit::kAlways;
  cell.of = statistic;
  return program.AddCell(std::move(cell)).id;
}

}  // namespace

PendingStatistics::PendingStatistics(const Program& program) {
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kAccumulator || !cell.of.valid()) continue;
    all_.push_back(cell.id);
    of_.emplace(cell.of, cell.id);
  }
}

CellId PendingStatistics::Of(CellId statistic) const {
  const auto it = of_.find(statistic);
  return it == of_.end() ? CellId() : it->second;
}

absl::Status AccumulateRunningStatistics(Entry& accumulate) {
  Block& block = accumulate.block();
  const std::vector<NormStatistics> norms = FindNormStatistics(block);
  if (norms.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const ValueId no, NotRejected(block));
  Chain chain(accumulate, no);
  absl::flat_hash_map<CellId, CellId> pending;
  for (const NormStatistics& norm : norms) {
    for (CellId cell : {norm.mean, norm.variance}) {
      const auto [it, fresh] = pending.try_emplace(cell, CellId());
      if (!fresh) continue;
      it->second = AddPending(block.program(), cell);
      chain.Start(cell, block.CellValue(it->second));
    }
  }
  HT_RETURN_IF_ERROR(AddNorms(block, &chain));
  chain.NameAll();
  for (CellId cell : chain.cells()) chain.Commit(cell, pending[cell]);
  return absl::OkStatus();
}

absl::Status UpdateRunningStatistics(Entry& train, ValueId found_inf) {
  Block& block = train.block();
  const PendingStatistics pending(block.program());
  Chain guarded(train, found_inf);
  if (pending.all().empty()) {
    HT_RETURN_IF_ERROR(AddNorms(block, &guarded));
  } else {
    // The old value is the cell's, not that of the chain: what the chain comes
    // to is taken over whole.
    HT_ASSIGN_OR_RETURN(const ValueId no, NotRejected(block));
    Chain chain(train, no);
    const std::vector<NormStatistics> norms = FindNormStatistics(block);
    for (const NormStatistics& norm : norms) {
      for (CellId cell : {norm.mean, norm.variance}) {
        chain.Start(cell, block.CellValue(pending.Of(cell)));
      }
    }
    HT_RETURN_IF_ERROR(AddNorms(block, &chain));
    absl::flat_hash_map<CellId, bool> taken;
    for (const NormStatistics& norm : norms) {
      if (!taken.try_emplace(norm.mean, true).second) continue;
      HT_RETURN_IF_ERROR(guarded.Add(
          norm, chain.Latest(norm.mean), chain.Latest(norm.variance), 0.0,
          absl::StrCat(block.name(block.op(norm.norm)), ".taken")));
    }
  }
  guarded.NameAll();
  for (CellId cell : guarded.cells()) {
    guarded.Commit(cell, cell);
    const CellId next = pending.Of(cell);
    if (next.valid()) guarded.Commit(cell, next);
  }
  return absl::OkStatus();
}

}  // namespace passes
}  // namespace halftone
