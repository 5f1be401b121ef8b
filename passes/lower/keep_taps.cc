#include "passes/lower/keep_taps.h"

#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"

namespace halftone {
namespace passes {
namespace {

ValueId Find(Program& program, Block& train, const std::string& name) {
  const ValueId value = train.FindValue(name);
  if (value.valid()) return value;
  // Not every step reads the cell itself: of a frozen parameter only the low
  // copy, say.
  const CellId cell = program.FindCell(name);
  return cell.valid() ? train.CellValue(cell) : ValueId();
}

std::vector<std::string> Names(const Program& program, const Block& train) {
  std::vector<std::string> names;
  for (int i = 0; i < train.value_limit(); ++i) {
    const Value& value = train.value(ValueId(i));
    if (!value.erased) names.emplace_back(train.name(value.id));
  }
  for (int i = 0; i < program.num_cells(); ++i) {
    names.push_back(program.cell(CellId(i)).name);
  }
  return names;
}

}  // namespace

absl::StatusOr<bool> KeepTaps::Run(Program& program) {
  Entry* const train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return false;
  bool changed = false;
  for (const std::string& name : names_) {
    if (train->FindResult(name).valid()) continue;
    const ValueId value = Find(program, train->block(), name);
    if (!value.valid()) {
      return UsageError("--fetch ", name, ": the model has no value ",
                        "of that name in training",
                        NearestHint(name, Names(program, train->block())));
    }
    train->results().push_back({name, value});
    changed = true;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
