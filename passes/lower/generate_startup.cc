#include "passes/lower/generate_startup.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Inputs and outputs of the op that a weight is for: rank 2 is [in, out],
// rank 3 and up [out, in, kernel...]; a vector is its own.
struct Fans {
  double in = 1, out = 1;
};

Fans FansOf(absl::Span<const int64_t> shape) {
  Fans fans;
  if (shape.size() == 1) fans.in = fans.out = static_cast<double>(shape[0]);
  if (shape.size() == 2) {
    fans.in = static_cast<double>(shape[0]);
    fans.out = static_cast<double>(shape[1]);
  }
  if (shape.size() < 3) return fans;
  double field = 1;
  for (size_t i = 2; i < shape.size(); ++i) field *= shape[i];
  fans.in = shape[1] * field;
  fans.out = shape[0] * field;
  return fans;
}

// He et al. 2015 (kaiming), Glorot and Bengio 2010 (xavier): the standard
// deviation of the weights.
double Deviation(const Initializer& init, const Fans& fans) {
  switch (init.kind) {
    case Initializer::Kind::kXavierUniform:
    case Initializer::Kind::kXavierNormal:
      return init.a * std::sqrt(2 / (fans.in + fans.out));
    default:
      return std::sqrt(2 / (1 + init.a * init.a) / fans.in);
  }
}

// The op that makes a cell's first value, and its attributes; the second is
// empty if there is one.
struct Distribution {
  absl::string_view op, first, second;
  double a, b;
};

// A uniform distribution on +-b has the deviation b / sqrt(3).
Distribution DistributionOf(const Initializer& init, const Fans& fans) {
  const double deviation = Deviation(init, fans);
  const double bound = std::sqrt(3.0) * deviation;
  switch (init.kind) {
    case Initializer::Kind::kUniform:
      return {"init_uniform", "low", "high", init.a, init.b};
    case Initializer::Kind::kNormal:
      return {"init_normal", "mean", "std", init.a, init.b};
    case Initializer::Kind::kTruncatedNormal:
      return {"init_truncated_normal", "mean", "std", init.a, init.b};
    case Initializer::Kind::kXavierUniform:
    case Initializer::Kind::kKaimingUniform:
      return {"init_uniform", "low", "high", -bound, bound};
    case Initializer::Kind::kXavierNormal:
    case Initializer::Kind::kKaimingNormal:
      return {"init_normal", "mean", "std", 0, deviation};
    case Initializer::Kind::kConstant:
    case Initializer::Kind::kNone:
      break;
  }
  return {"fill_constant", "value", "", init.a, 0};
}

// The random stream of a cell: 31 bits of its name, never 0.
int64_t StreamOf(absl::string_view name) {
  return static_cast<int64_t>(StableHash(name) & 0x7fffffffu) | 1;
}

// This rank's part, of a cell that is sharded.
absl::StatusOr<ValueId> PartFor(Block& block, const Cell& cell, ValueId value) {
  if (!cell.type.sharded) return value;
  OpBuilder take = MakeOp(block, "take_shard", Role::kForward);
  take.In("X", {value}).Out("Out", absl::StrCat(cell.name, ".init.shard"));
  return BuildValue(block, take);
}

// Of what a cell begins with.
NameId InitName(Program& program, const Cell& cell) {
  return program.names().Append(program.cell_name(cell.id), ".init");
}

absl::Status InitCell(Entry& entry, const Cell& cell) {
  Block& block = entry.block();
  std::vector<int64_t> shape;
  shape.reserve(cell.type.dims.size());
  for (const Dim& dim : cell.type.dims) {
    if (!dim.is_constant()) {
      return CompilerBug("cell ", cell.name, " has a symbolic size");
    }
    shape.push_back(dim.coefficient());
  }
  // It begins as its parameter does.
  const bool average = cell.kind == CellKind::kAverage;
  // Low cells are drawn in f32 and rounded once.
  const bool low = IsLow(cell.type.dtype);
  const NameId name = InitName(block.program(), cell);
  const Distribution draws = DistributionOf(cell.init, FansOf(shape));
  OpBuilder init = MakeOp(block, draws.op, Role::kForward);
  init.Attr("shape", std::move(shape))
      .Attr("dtype", low ? DType::kF32 : cell.type.dtype)
      .Out("Out", low ? block.program().names().Append(name, ".f32") : name)
      .Line(cell.line);
  if (cell.init.kind != Initializer::Kind::kConstant) {
    init.Attr("stream", StreamOf(average ? block.program().cell(cell.of).name
                                         : cell.name));
  }
  init.Attr(draws.first, draws.a);
  if (!draws.second.empty()) init.Attr(draws.second, draws.b);
  HT_ASSIGN_OR_RETURN(ValueId value, BuildValue(block, init));
  if (block.type(value).layout != cell.type.layout) {
    TensorType type = block.type(value);
    type.layout = cell.type.layout;
    block.SetType(value, type);
  }
  if (low) {
    OpBuilder cast = MakeOp(block, "cast", Role::kForward);
    cast.In("X", value).Attr("to", cell.type.dtype).Out("Out", name);
    HT_ASSIGN_OR_RETURN(value, BuildValue(block, cast));
  }
  HT_ASSIGN_OR_RETURN(value, PartFor(block, cell, value));
  entry.commits().push_back({cell.id, value});
  return absl::OkStatus();
}

absl::Status DeriveCell(Entry& entry, const Cell& cell) {
  Block& block = entry.block();
  ValueId owner = block.CellValue(cell.of);
  if (block.type(owner).sharded) {
    OpBuilder gather = MakeOp(block, "all_gather", Role::kForward);
    gather.In("X", {owner})
        .Out("Out", absl::StrCat(block.name(owner), ".gathered"));
    HT_ASSIGN_OR_RETURN(owner, BuildValue(block, gather));
  }
  OpBuilder cast = MakeOp(block, "cast", Role::kForward);
  cast.In("X", owner)
      .Attr("to", cell.type.dtype)
      .Out("Out", InitName(block.program(), cell));
  HT_ASSIGN_OR_RETURN(const ValueId value, BuildValue(block, cast));
  entry.commits().push_back({cell.id, value});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> GenerateStartup::Run(Program& program) {
  if (program.FindEntry(kInitEntry) != nullptr) return false;
  Entry& init = program.AddEntry(kInitEntry);
  Entry& derive = program.AddEntry(kDeriveEntry);
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    HT_RETURN_IF_ERROR(cell.IsMadeAgain() ? DeriveCell(derive, cell)
                                          : InitCell(init, cell));
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
