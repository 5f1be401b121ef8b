// Settings that say something, and that nothing reads.
#ifndef HALFTONE_PASSES_IDLE_SETTINGS_H_
#define HALFTONE_PASSES_IDLE_SETTINGS_H_

#include <string>
#include <vector>

#include "graph/ir/program.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// "--set: lr.base, --set: lr.base_batch (lr.one_cycle.max_lr says the rates)"
// of those that a file or a flag gives, in the order of the table; `source`:
// before any pass. Defaults
// and what presets stand for are none, nor is anything of a model that is not
// trained.
std::vector<std::string> IdleSettings(const Program& source,
                                      const Options& options);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_IDLE_SETTINGS_H_
