#include "passes/differentiate/freeze.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

absl::StatusOr<bool> Freeze::Run(Program& program) {
  bool changed = false;
  const auto& globs = options_.strategy.optimizer().freeze();
  for (int member = 0; member < globs.size(); ++member) {
    const std::string& glob = globs[member];
    bool matched = false;
    std::vector<std::string> names;
    for (int i = 0; i < program.num_cells(); ++i) {
      const Cell& cell = program.cell(CellId(i));
      if (cell.kind != CellKind::kParameter) continue;
      names.push_back(cell.name);
      if (!GlobMatch(glob, cell.name)) continue;
      matched = true;
      if (!cell.trainable) continue;
      program.cell(cell.id).trainable = false;
      changed = true;
    }
    if (!matched) {
      return FieldError(options_, "optimizer.freeze",
                        absl::StrCat("no parameter matches \"", glob, "\"",
                                     NearestHint(glob, names)),
                        member);
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
