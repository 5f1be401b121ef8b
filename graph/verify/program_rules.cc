// Symbols, cells, constants, and what the program says of its values.
#include <cmath>

#include "absl/strings/ascii.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/schema/place.h"
#include "graph/verify/limits.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

void CheckSymbols(const Program& program, Phase, Reporter& report) {
  for (const std::string& symbol : program.symbols()) {
    if (symbol.empty() || !absl::ascii_isalpha(symbol[0])) {
      report.At(0, "dim ", symbol, ": expected a name that begins with a ",
                "letter");
    }
  }
}

// The value of a cell or constant has its name in every block.
void CheckNames(const Program& program, Phase, Reporter& report) {
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    const std::string wrong = BadName(cell.name);
    if (!wrong.empty()) report.At(cell.line, "a cell's name ", wrong);
  }
  for (int i = 0; i < program.num_constants(); ++i) {
    const std::string& name = program.constant(ConstantId(i)).name;
    const std::string wrong = BadName(name);
    if (!wrong.empty()) report.At(0, "a constant's name ", wrong);
    if (program.FindCell(program.constant_name(ConstantId(i))).valid()) {
      report.At(0, "a cell and a constant are both called ", name);
    }
  }
}

// Storage whose size does not depend on the batch.
void CheckStorage(const Program& program, const TensorType& type, int line,
                  absl::string_view what, absl::string_view name,
                  Reporter& report) {
  std::string wrong = BadDims(type);
  for (const Dim& dim : type.dims) {
    if (!dim.is_constant()) wrong = "its dims depend on the batch";
  }
  if (type.dtype == DType::kInvalid) wrong = "it has no dtype";
  if (!wrong.empty()) {
    report.At(line, what, " ", name, ": ", wrong, ", found ",
              ToString(type, program.symbols()));
  }
}

void CheckCellTypes(const Program& program, Phase, Reporter& report) {
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    CheckStorage(program, cell.type, cell.line, "cell", cell.name, report);
    if (cell.trainable &&
        (cell.kind != CellKind::kParameter || !IsFloat(cell.type.dtype))) {
      report.At(cell.line, "cell ", cell.name,
                ": expected only parameters of a float dtype to be trainable");
    }
    if (cell.type.sharded != (cell.spread == Spread::kSharded)) {
      report.At(cell.line, "cell ", cell.name,
                ": expected shards in a sharded cell, and only there");
    }
    const bool own =
        cell.kind == CellKind::kScaler || cell.kind == CellKind::kClock;
    const bool adds = cell.kind == CellKind::kAccumulator;
    if (!own && !adds && cell.commit != Commit::kApplied) {
      report.At(cell.line, "cell ", cell.name,
                ": expected only scaler, clocks and accumulators to be "
                "committed always");
    }
    if (adds && cell.commit != Commit::kAlways) {
      report.At(cell.line, "cell ", cell.name,
                ": expected an accumulator to be committed always");
    }
    if (!std::isfinite(cell.init.a) || !std::isfinite(cell.init.b)) {
      report.At(cell.line, "cell ", cell.name,
                ": expected an initialiser of finite numbers");
    }
  }
}

// Slots, averages and derived cells belong to a parameter, an accumulator may
// belong to what train changes besides. What is computed from its owner has no
// initialiser.
void CheckCellOwners(const Program& program, Phase, Reporter& report) {
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    const bool adds = cell.kind == CellKind::kAccumulator && cell.of.valid();
    const bool derived = cell.IsMadeAgain();
    const bool average = cell.kind == CellKind::kAverage;
    const bool owned = derived || average || cell.kind == CellKind::kSlot;
    const bool exists =
        cell.of.valid() && cell.of.index() < program.num_cells();
    const CellKind owner = exists ? program.cell(cell.of).kind : cell.kind;
    const bool has_owner = exists && (owner == CellKind::kParameter ||
                                      (adds && (owner == CellKind::kStatistic ||
                                                owner == CellKind::kAverage)));
    if (owned != cell.of.valid() || owned != has_owner) {
      report.At(cell.line, "cell ", cell.name, ": expected ",
                adds ? "the parameter, statistic or average that it belongs to"
                : owned ? "the parameter that it belongs to"
                        : "no owner");
      continue;
    }
    if (derived != (cell.init.kind == Initializer::Kind::kNone)) {
      report.At(cell.line, "cell ", cell.name, ": expected ",
                derived ? "no initialiser: it is computed" : "an initialiser");
    }
    if ((derived || average) &&
        cell.type.dims != program.cell(cell.of).type.dims) {
      report.At(cell.line, "cell ", cell.name, ": expected the dims of ",
                program.cell(cell.of).name);
    }
  }
}

void CheckConstants(const Program& program, Phase, Reporter& report) {
  for (int i = 0; i < program.num_constants(); ++i) {
    const Constant& constant = program.constant(ConstantId(i));
    const int before = report.count();
    CheckStorage(program, constant.type, 0, "constant", constant.name, report);
    const int64_t found = constant.values.size();
    if (report.count() == before &&
        constant.type.Elements().coefficient() != found) {
      report.At(0, "constant ", constant.name, ": expected ",
                constant.type.Elements().coefficient(), " values, found ",
                found);
    }
  }
}

// Loss, metrics and outputs name values of the forward program. Later phases
// hand those on as results.
void CheckNamedValues(const Program& program, Phase phase, Reporter& report) {
  const Entry* train = program.FindEntry(kTrainEntry);
  if (phase != Phase::kSource || train == nullptr) return;
  const auto check = [&](absl::string_view what, const std::string& name) {
    if (!name.empty() && !train->block().FindValue(name).valid()) {
      report.At(0, what, ": no value is called ", name);
    }
  };
  check("loss", program.loss.var);
  check("loss: mean_over", program.loss.mean_over);
  check("loss: mask", program.loss.mask);
  for (const std::string& value : program.loss.denominators) {
    check("loss: denominator", value);
  }
  for (const LossPart& part : program.loss.parts) {
    check("loss: part", part.name);
    check("loss: part", part.weighted);
  }
  for (const MetricInfo& metric : program.metrics) {
    check(absl::StrCat("metric ", metric.name), metric.var);
    check(absl::StrCat("metric ", metric.name, ": over"), metric.over);
  }
  for (const std::string& output : program.outputs) check("output", output);
}

constexpr ProgramRule kProgramRules[] = {
    {Phase::kSource, CheckSymbols},   {Phase::kSource, CheckNames},
    {Phase::kSource, CheckCellTypes}, {Phase::kSource, CheckCellOwners},
    {Phase::kSource, CheckConstants}, {Phase::kSource, CheckNamedValues},
};

}  // namespace

absl::Span<const ProgramRule> ProgramRules() { return kProgramRules; }

}  // namespace verify
}  // namespace halftone
