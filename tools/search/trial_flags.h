// What the verbs share that run programs again and again.
#ifndef HALFTONE_TOOLS_SEARCH_TRIAL_FLAGS_H_
#define HALFTONE_TOOLS_SEARCH_TRIAL_FLAGS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "runtime/train/trainer.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/run_flags.h"
#include "tools/search/kept_results.h"
#include "tools/search/metric.h"
#include "tools/search/training_runs.h"
#include "tools/search/trials.h"

namespace halftone {
namespace tools {

struct TrialFlags {
  ModelFlags model;
  RankFlags ranks;
  runtime::TrainConfig config;  // of the runs
  std::string tolerance, out, strategy_out;
  int runs = 1;
  bool json = false;
};
// `tolerance`, `runs`: the help of --tolerance and --runs.
void AddTrialFlags(Verb verb, TrialFlags* flags, const std::string& tolerance,
                   const std::string& runs);

// The model's target, if none is named: where the runs will be.
absl::Status FillTarget(TrialFlags* flags);

// The results in --out, or where the verb keeps those of this model, of all
// that they depend on: the question is added to. Errors: see KeptResults.
absl::StatusOr<KeptResults> OpenResults(
    const std::string& verb, const TrialFlags& flags,
    const CompiledModel& model, const Metric& metric,
    std::map<std::string, std::string> question);

// Trainings with these flags. The results outlive them.
absl::StatusOr<TrainingRuns> MakeTrainingRuns(const std::string& verb,
                                              const TrialFlags& flags,
                                              const Metric& metric,
                                              const KeptResults& kept);

// Says what the trials do, on stderr.
void SayTrial(const std::string& line);

// A strategy file for people and programs to --strategy_out and stdout, or the
// JSON there.
absl::Status ShowFound(const TrialFlags& flags, const std::string& text,
                       const std::string& json);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_TRIAL_FLAGS_H_
