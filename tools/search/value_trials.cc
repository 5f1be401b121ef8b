#include "tools/search/value_trials.h"

#include <cmath>
#include <vector>

#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace tools {

absl::StatusOr<TrialValue> ValueTrials::Run(const CompiledModel& model,
                                            int64_t seed) const {
  runtime::TrainConfig config = settings_.config;
  HT_RETURN_IF_ERROR(FillConfig(model, &config));
  config.strategy.mutable_train()->set_seed(seed);
  runtime::CompareOptions options;
  options.batches = settings_.batches;
  options.isolated = false;
  HT_ASSIGN_OR_RETURN(const runtime::Comparison comparison,
                      runtime::ComparePrograms(
                          *reference_.program, *model.program, *ranks_.kernels,
                          config, ranks_.resources[0], options));
  std::vector<std::string> names;
  for (const int position : WorstFirst(comparison, settings_.bound)) {
    const runtime::ComparedValue& value = comparison.values[position];
    if (settings_.values.empty() ||
        GlobMatch(settings_.values, value.value.name)) {
      const double worst = Measure(settings_.bound, value.chained);
      return std::isfinite(worst) ? TrialValue(worst) : TrialValue();
    }
    names.push_back(value.value.name);
  }
  return UsageError("--values ", settings_.values,
                    ": no value that both programs have matches",
                    NearestHint(settings_.values, names));
}

}  // namespace tools
}  // namespace halftone
