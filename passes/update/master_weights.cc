#include "passes/update/master_weights.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// A cast of a parameter to a low dtype in one entry.
struct LowRead {
  Entry* entry;
  OpId cast;
  CellId parameter;
};

std::vector<LowRead> FindLowReads(Program& program) {
  std::vector<CellId> parameters;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind == CellKind::kParameter && cell.type.dtype == DType::kF32) {
      parameters.push_back(cell.id);
    }
  }
  std::vector<LowRead> reads;
  for (const auto& entry : program.entries()) {
    if (entry->name() == kInitEntry || entry->name() == kDeriveEntry) continue;
    const Block& block = entry->block();
    std::vector<CellId> cast_by(block.op_limit());
    size_t left = 0;
    for (CellId parameter : parameters) {
      for (OpId cast : LowCastsOf(block, parameter)) {
        cast_by[cast.index()] = parameter;
        ++left;
      }
    }
    // In the order of the casts.
    for (OpId id = block.first(); left > 0; id = block.next(id)) {
      if (!cast_by[id.index()].valid()) continue;
      reads.push_back({entry.get(), id, cast_by[id.index()]});
      --left;
    }
  }
  return reads;
}

// The derived cell of each parameter, made on first demand.
class LowCells {
 public:
  explicit LowCells(Program& program) : program_(program) {}

  absl::StatusOr<CellId> Get(const LowRead& read) {
    const Block& block = read.entry->block();
    const ValueId low = block.op(read.cast).out(0);
    const auto [it, fresh] = cells_.try_emplace(read.parameter, CellId());
    if (fresh) {
      const NameId name = block.value(low).name;
      if (program_.FindCell(name).valid()) {
        return CompilerBug("cell ", block.name(low),
                           " exists beside a cast of ",
                           program_.cell(read.parameter).name);
      }
      Cell cell;
      cell.type = block.type(low);
      cell.kind = CellKind::kDerived;
      cell.init.kind = Initializer::Kind::kNone;
      cell.commit = Commit::kApplied;
      cell.spread = program_.cell(read.parameter).spread;
      cell.of = read.parameter;
      it->second = program_.AddCell(name, std::move(cell)).id;
    } else if (program_.cell(it->second).type.dtype != block.dtype(low)) {
      return CompilerBug("parameter ", program_.cell(read.parameter).name,
                         " is read in two low dtypes");
    }
    return it->second;
  }
  const absl::flat_hash_map<CellId, CellId>& all() const { return cells_; }

 private:
  Program& program_;
  absl::flat_hash_map<CellId, CellId> cells_;  // by parameter
};

// What the cast made is the cell's value.
void ReplaceCast(const LowRead& read, CellId low, HeldValues& held) {
  Block& block = read.entry->block();
  const ValueId cast = block.op(read.cast).out(0);
  const ValueId known = block.FindCellValue(low);
  if (known.valid()) {
    ReplaceValue(block, cast, known, held);
  } else {
    block.MoveToCell(cast, low);
  }
  block.EraseOp(read.cast);
}

// Lets the update write the low cells of its parameters, too.
absl::Status WriteLow(Entry& train, OpId update,
                      const absl::flat_hash_map<CellId, CellId>& low_cells) {
  Block& block = train.block();
  Program& program = block.program();
  Op& op = block.mutable_op(update);
  const auto params = op.inputs.slot(op.schema->FindInput("Param"));
  std::vector<CellId> lows;
  for (ValueId param : params) {
    const auto it = low_cells.find(block.value(param).cell());
    if (it != low_cells.end()) lows.push_back(it->second);
  }
  if (lows.empty()) return absl::OkStatus();
  if (lows.size() != params.size()) {
    return CompilerBug(block.name(op), " updates ", params.size(),
                       " parameters, of which ", lows.size(),
                       " have a low cell: append-optimizer must group them");
  }
  const int slot = op.schema->FindOutput("LowOut");
  std::vector<NameId> names;
  for (CellId low : lows) {
    const NameId name = program.cell_name(low);
    const ValueId next = block.AddOutput(
        update, slot,
        block.UniqueValueName(program.names().Append(name, kNextSuffix)),
        program.InternTypeOf(low));
    train.commits().push_back({low, next});
    names.push_back(name);
  }
  AddOrigins(op, names);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> MasterWeights::Run(Program& program) {
  const std::vector<LowRead> reads = FindLowReads(program);
  if (reads.empty()) return false;
  LowCells cells(program);
  std::map<const Entry*, HeldValues> held;
  for (const LowRead& read : reads) {
    HT_ASSIGN_OR_RETURN(const CellId low, cells.Get(read));
    ReplaceCast(read, low,
                held.try_emplace(read.entry, *read.entry).first->second);
  }
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return true;
  Block& block = train->block();
  for (OpId id : GuardedOps(block)) {
    const OpSchema& schema = *block.op(id).schema;
    if (schema.FindOutput("LowOut") < 0 || schema.FindInput("Param") < 0) {
      continue;
    }
    HT_RETURN_IF_ERROR(WriteLow(*train, id, cells.all()));
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
