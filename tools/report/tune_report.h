// What `halftone tune` says.
#ifndef HALFTONE_TOOLS_REPORT_TUNE_REPORT_H_
#define HALFTONE_TOOLS_REPORT_TUNE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "runtime/tune/tune.h"

namespace halftone {
namespace tools {

// The entries of a model with the samples of each rank of a split: one binding
// for each number that comes. `batch` is of all ranks; 0: the strategy's.
absl::StatusOr<std::vector<runtime::TuneBinding>> TuneBindings(
    const CompiledModel& model, int64_t batch, int ranks);

// A line per op that was timed, what was chosen, and where it is written.
std::string TuneText(const runtime::Tuned& tuned, int runs,
                     const std::string& path);
std::string TuneJson(const runtime::Tuned& tuned, int runs,
                     const std::string& path);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_TUNE_REPORT_H_
