// A trial as a training: `halftone run` of a compiled model, a process of its
// own.
#ifndef HALFTONE_TOOLS_SEARCH_TRAINING_RUNS_H_
#define HALFTONE_TOOLS_SEARCH_TRAINING_RUNS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/base/disk/directory.h"
#include "graph/io/compiled_model.h"
#include "tools/search/metric.h"

namespace halftone {
namespace tools {

class TrainingRuns {
 public:
  struct Settings {
    std::string verb;  // that wants them, for errors
    Metric metric;
    std::vector<std::string> words;  // of `run`, behind the model
    std::string self;                // the binary that has `run`
  };
  // Their files lie in `directory`, which outlives it.
  TrainingRuns(Settings settings, const Directory* directory)
      : settings_(std::move(settings)), directory_(*directory) {}

  // The metric of the run's last eval; none: it diverged, or its metric is not
  // finite. Errors: it ended in any other way (with its code and the log's
  // path), no such metric in its eval.
  absl::StatusOr<TrialValue> Run(const CompiledModel& model,
                                 int64_t seed) const;

 private:
  absl::StatusOr<TrialValue> ValueOf(const Directory& run) const;

  const Settings settings_;
  const Directory& directory_;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_TRAINING_RUNS_H_
