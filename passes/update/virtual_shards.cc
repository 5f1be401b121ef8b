#include "passes/update/virtual_shards.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/shard_feed.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/rewrite/rewrite.h"
#include "passes/update/micro_batch_entry.h"

namespace halftone {
namespace passes {
namespace {

bool IsCombination(const Op& op) {
  return op.schema->name() == "combine_stats";
}
bool IsOverShards(const Op& op) { return IsSummed(op) || IsCombination(op); }

class ShardSums {
 public:
  ShardSums(Program& program, Entry& train, MicroBatchEntry& shard, int levels)
      : program_(program), train_(train), shard_(shard), levels_(levels) {}

  // Member `i` of a reduction.
  absl::Status Sum(OpId reduction, int i);
  // The statistics of the norm number `i` of a combination of `norms`.
  absl::Status Combine(OpId combination, int i, int norms);

 private:
  absl::StatusOr<std::vector<CellId>> Partials(ValueId term);
  static std::vector<ValueId> ValuesOf(Block& block,
                                       const std::vector<CellId>& cells) {
    std::vector<ValueId> values;
    for (CellId cell : cells) values.push_back(block.CellValue(cell));
    return values;
  }
  // An op behind what makes `x`, which knows the shard's number.
  static absl::StatusOr<OpBuilder> Make(Block& block, absl::string_view type,
                                        ValueId x) {
    HT_ASSIGN_OR_RETURN(const ValueId shard, WellKnownValue(&block, kShard));
    OpBuilder op = MakeOp(block, type, Role::kLossScale);
    op.At(block.After(block.value(x).op())).In("Term", shard);
    return op;
  }
  // What `made` makes of the partial sums is what they are from now on.
  void Commit(const std::vector<CellId>& cells, OpId made, int first) {
    Entry& entry = shard_.entry();
    const auto outputs = entry.block().op(made).outputs.all();
    for (size_t l = 0; l < cells.size(); ++l) {
      entry.commits().push_back({cells[l], outputs[first + l]});
    }
  }

  Program& program_;
  Entry& train_;
  MicroBatchEntry& shard_;
  int levels_;
};

absl::StatusOr<std::vector<CellId>> ShardSums::Partials(ValueId term) {
  const Block& block = train_.block();
  std::vector<CellId> cells;
  for (int l = 0; l < levels_; ++l) {
    Cell cell;
    cell.name =
        block.UniqueValueName(absl::StrCat(block.name(term), ".sum.", l));
    if (program_.FindCell(cell.name).valid()) {
      return ModelError(program_.file, ": ", cell.name,
                        " is the name of a sum of ", block.name(term),
                        " over shards; rename the model's value");
    }
    cell.type = block.type(term);
    cell.kind = CellKind::kAccumulator;
    cell.init.kind = Initializer::Kind::kConstant;
    cell.commit = Commit::kAlways;
    cell.spread = Spread::kPerRank;
    cells.push_back(program_.AddCell(std::move(cell)).id);
  }
  return cells;
}

absl::Status ShardSums::Sum(OpId reduction, int i) {
  Block& train = train_.block();
  const ValueId term = train.op(reduction).inputs.all()[i];
  // The host asks for the end once a step.
  if (!train.value(term).op().valid()) return absl::OkStatus();
  if (train.dtype(term) != DType::kF32) {
    return CompilerBug("the sum of ", train.name(term),
                       " over shards is not f32: insert-allreduce has to cast");
  }
  const std::string name(train.name(term));
  HT_ASSIGN_OR_RETURN(const std::vector<CellId> cells, Partials(term));

  Block& block = shard_.entry().block();
  const ValueId local = shard_.Map(term);
  HT_ASSIGN_OR_RETURN(OpBuilder add, Make(block, "tree_accumulate", local));
  add.Name(absl::StrCat(name, ".added"))
      .In("X", local)
      .In("Partials", ValuesOf(block, cells));
  for (int l = 0; l < levels_; ++l) {
    add.Out("Out", absl::StrCat(name, ".added.", l));
  }
  HT_ASSIGN_OR_RETURN(const OpId added, add.Build());
  Commit(cells, added, 0);

  HT_ASSIGN_OR_RETURN(OpBuilder sum, Make(train, "tree_sum", term));
  sum.In("X", term)
      .In("Partials", ValuesOf(train, cells))
      .Out("Out", absl::StrCat(name, ".summed"));
  HT_ASSIGN_OR_RETURN(const ValueId summed, BuildValue(train, sum));
  train.SetInput(reduction, i, summed);
  return absl::OkStatus();
}

absl::Status ShardSums::Combine(OpId combination, int i, int norms) {
  static constexpr const char* kTerms[] = {"Mean", "Variance", "Count"};
  static constexpr const char* kPartials[] = {"Means", "Variances", "Counts"};
  Block& train = train_.block();
  Block& block = shard_.entry().block();
  ValueId terms[3];
  std::vector<CellId> cells[3];
  for (int s = 0; s < 3; ++s) {
    terms[s] = train.op(combination).inputs.all()[s * norms + i];
    HT_ASSIGN_OR_RETURN(cells[s], Partials(terms[s]));
  }
  const std::string name(train.name(train.op(train.value(terms[0]).op())));
  HT_ASSIGN_OR_RETURN(OpBuilder add, Make(block, "tree_accumulate_stats",
                                          shard_.Map(terms[0])));
  HT_ASSIGN_OR_RETURN(OpBuilder all,
                      Make(train, "tree_combine_stats", terms[0]));
  add.Name(absl::StrCat(name, ".added"));
  all.Name(absl::StrCat(name, ".summed"));
  for (int s = 0; s < 3; ++s) {
    add.In(kTerms[s], shard_.Map(terms[s]))
        .In(kPartials[s], ValuesOf(block, cells[s]));
    all.In(kTerms[s], terms[s])
        .In(kPartials[s], ValuesOf(train, cells[s]))
        .Out(kTerms[s], absl::StrCat(train.name(terms[s]), ".summed"));
    for (int l = 0; l < levels_; ++l) {
      add.Out(kPartials[s], absl::StrCat(train.name(terms[s]), ".added.", l));
    }
  }
  HT_ASSIGN_OR_RETURN(const OpId added, add.Build());
  HT_ASSIGN_OR_RETURN(const OpId summed, all.Build());
  for (int s = 0; s < 3; ++s) {
    Commit(cells[s], added, s * levels_);
    train.SetInput(combination, s * norms + i,
                   train.op(summed).outputs.all()[s]);
  }
  return absl::OkStatus();
}

int LevelsOf(int64_t shards) {
  int levels = 0;
  while (int64_t{1} << levels < shards) ++levels;
  return levels;
}

}  // namespace

absl::StatusOr<bool> VirtualShards::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (shards_ <= 1 || train == nullptr || train->gradients().empty() ||
      program.FindEntry(kAccumulateEntry) != nullptr) {
    return false;
  }
  Block& block = train->block();
  HT_ASSIGN_OR_RETURN(
      MicroBatchEntry shard,
      MicroBatchEntry::Add(program, block,
                           absl::StrCat("dist.virtual_shards ", shards_),
                           IsOverShards));
  ShardSums sums(program, *train, shard, LevelsOf(shards_));
  for (OpId id : OpsOfType(block, "all_reduce")) {
    if (!IsSummed(block.op(id))) continue;
    const auto members = static_cast<int>(block.op(id).inputs.all().size());
    for (int i = 0; i < members; ++i) HT_RETURN_IF_ERROR(sums.Sum(id, i));
  }
  for (OpId id : OpsOfType(block, "combine_stats")) {
    const auto norms = static_cast<int>(block.op(id).inputs.slot(0).size());
    for (int i = 0; i < norms; ++i) {
      HT_RETURN_IF_ERROR(sums.Combine(id, i, norms));
    }
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
