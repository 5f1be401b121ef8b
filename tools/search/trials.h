// Runs of compiled models that are made once.
#ifndef HALFTONE_TOOLS_SEARCH_TRIALS_H_
#define HALFTONE_TOOLS_SEARCH_TRIALS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/io/compiled_model.h"
#include "tools/search/kept_results.h"
#include "tools/search/metric.h"

namespace halftone {
namespace tools {

class Trials {
 public:
  struct Settings {
    Metric metric;
    int runs = 1;  // of each program at most, with seeds of their own
    // Runs a program once.
    std::function<absl::StatusOr<TrialValue>(const CompiledModel& model,
                                             int64_t seed)>
        run;
    std::function<void(const std::string& line)> say;
  };
  // Whether these runs of a program are enough.
  using Decided = std::function<bool(absl::Span<const TrialValue> runs)>;

  // `kept` outlives it.
  Trials(Settings settings, KeptResults* kept)
      : settings_(std::move(settings)), kept_(*kept) {}

  // The metric of the runs of this program, with the seeds that follow its
  // own: a percentage, or a loss. They end early at one that diverges, or where
  // `decided`, if it is given, says so. Errors: those of a run.
  absl::StatusOr<std::vector<TrialValue>> Measure(
      const CompiledModel& model, const std::string& what,
      const Decided& decided = nullptr);

  const Metric& metric() const { return settings_.metric; }
  // Programs that were measured, their runs, and those made just now.
  int programs() const { return programs_; }
  int runs() const { return runs_; }
  int runs_made() const { return made_; }

 private:
  const Settings settings_;
  KeptResults& kept_;
  int programs_ = 0, runs_ = 0, made_ = 0;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_TRIALS_H_
