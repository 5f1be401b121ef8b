// A trial without training: how far values of a program are from those of a
// reference.
#ifndef HALFTONE_TOOLS_SEARCH_VALUE_TRIALS_H_
#define HALFTONE_TOOLS_SEARCH_VALUE_TRIALS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "runtime/compare/error_bound.h"
#include "runtime/train/trainer.h"
#include "tools/common/run_flags.h"
#include "tools/search/kept_results.h"

namespace halftone {
namespace tools {

class ValueTrials {
 public:
  struct Settings {
    runtime::TrainConfig config;  // data, --init
    runtime::ErrorBound bound;    // its measure
    std::string values;           // a glob over their names; empty: all
    int64_t batches = 1;
  };
  // Both outlive it; the ranks are one.
  ValueTrials(Settings settings, const CompiledModel* reference,
              const LocalRanks* ranks)
      : settings_(std::move(settings)),
        reference_(*reference),
        ranks_(*ranks) {}

  // The largest measure of any of the values, each program on its own
  // (chained); none: it is not finite. Errors: no value matches (kUsage), those
  // of ComparePrograms.
  absl::StatusOr<TrialValue> Run(const CompiledModel& model,
                                 int64_t seed) const;

 private:
  const Settings settings_;
  const CompiledModel& reference_;
  const LocalRanks& ranks_;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_VALUE_TRIALS_H_
