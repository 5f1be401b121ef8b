// What a strategy asks of a model that does not have it.
#ifndef HALFTONE_PASSES_STRATEGY_NOTES_H_
#define HALFTONE_PASSES_STRATEGY_NOTES_H_

#include <vector>

#include "absl/status/status.h"
#include "graph/io/compiled_model.h"
#include "graph/ir/program.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// An optimizer group whose glob matches no parameter, as FieldError.
absl::Status CheckGroups(const Program& source, const Options& options);

// A glob of memory.recompute.checkpoints or memory.compress.values that names
// nothing in train.
absl::Status CheckMemoryGlobs(const Program& source, const Options& options);

// P2 to P5 and P11 to P13: settings without effect, and a preset that explicit
// fields change.
std::vector<proto::Note> StrategyNotes(const Program& source,
                                       const Options& options);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_STRATEGY_NOTES_H_
