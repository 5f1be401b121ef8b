// Training, evaluation and export of a compiled program: epochs, checkpoints,
// reports, the stop rule. Process supervision is runtime/launch's.
#ifndef HALFTONE_RUNTIME_TRAIN_TRAINER_H_
#define HALFTONE_RUNTIME_TRAIN_TRAINER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"
#include "proto/strategy.pb.h"
#include "runtime/collective/communicator.h"
#include "runtime/data/dataset.h"
#include "runtime/device/device.h"
#include "runtime/plan/tuning_table.h"
#include "runtime/report/step_events.h"

namespace halftone {
namespace runtime {

// "500", "10m", "1e": every 500 attempted steps, 10 minutes, 1 epoch.
struct Cadence {
  enum class Unit : uint8_t { kSteps, kMinutes, kEpochs, kNever };
  Unit unit = Unit::kEpochs;
  int64_t every = 1;
};
// `flag` names the flag in errors (kUsage).
absl::StatusOr<Cadence> ParseCadence(absl::string_view flag,
                                     absl::string_view text);

// Everything that decides a run: the strategy, and what is none.
struct TrainConfig {
  // Resolved; what its fields mean stands with them, and nowhere else.
  proto::Strategy strategy;
  // Flags.
  std::string data;       // "idx:models/digits"
  std::string eval_data;  // empty: the data's own test split
  std::vector<std::string> feed_map;
  std::string out;  // run directory; empty: none (nothing is written)
  bool resume = false;
  std::string init;  // safetensors or run directory to take parameters from
  // Of --init: what has another shape than in the model stays initial.
  bool ignore_mismatched = false;
  bool shuffle = true;
  int readers = 1;
  int64_t log_every = 10;
  Cadence checkpoint_every, eval_every, compare_every;
  int keep_checkpoints = 3;
  std::vector<std::string> fetches;  // VALUE[:norm|hist|npz|exponents]
  // Steps between those that show what is fetched; 0: each step event does.
  int64_t fetch_every = 0;
  bool deterministic = true, use_graphs = true;
  // Where the time of the steps goes is reported; they run one by one. `trace`:
  // a file for the latest of them (Perfetto); empty: none.
  bool profile = false;
  std::string trace;
  bool json = false;  // the report at the end is summary.json's object
  // Called by rank 0 of this process with the attempted step and what it is
  // doing ("train", "eval", "checkpoint"): for a supervisor's status page.
  std::function<void(int64_t step, const char* activity)> on_activity;
  // Likewise, after a checkpoint of that step was written.
  std::function<void(int64_t step)> on_checkpoint;
  // What the compiler says of the model, asked when a run has diverged; each
  // may be empty. The names of the ops as the model has them.
  std::function<std::vector<std::string>()> model_ops;
  // Whether the model compiles with a strategy field set to a value, and into
  // another program if the field is one of amp.
  std::function<bool(const std::string& path, const std::string& value)>
      accepts;
  // Why a launcher started this run again; all but `step`.
  std::optional<RestartEvent> restart;
  // The .htc that was given; empty: a model that was compiled for this run.
  std::string compiled_path;
  // What is to be said before the first step.
  std::vector<std::string> notes;
  // For messages, manifest and summary.
  std::string fingerprint, state_signature;
  std::string model_bytes;  // the .htc, kept in the run directory
  // What was timed for this model, for a run that does not resume; only the
  // device that it was made on takes it.
  TuningTable tuning;
  int64_t max_unpack = kMaxUnpack;  // of packed data: see OpenData
  // Of how many rejected steps all that a replay needs is kept, in `out`.
  int64_t capsules = 0;
};

// The ranks of this process; each needs a device and a communicator.
struct RankResources {
  Device* device = nullptr;
  Communicator* communicator = nullptr;
};

// Trains on all given ranks (a thread each) and returns the process's exit
// code's status: OK; kDiverged from the stop rule; the first error otherwise.
// `*signal` gets the number of the signal that stopped the run (0: none).
// Rank 0 prints to stdout (report) and stderr (progress), and writes `out`:
// model.htc, strategy.pbtxt, tuning.json, metrics.jsonl, summary.json,
// events.out.tfevents.*, ckpt/step-N.
absl::Status Train(const Program& program,
                   const kernels::KernelRegistry& kernels,
                   const TrainConfig& config,
                   const std::vector<RankResources>& ranks, int* signal);

struct Metric {
  double correct = 0, total = 0;
};
struct EvalReport {
  double loss = 0;
  double samples = 0;
  std::map<std::string, Metric> metrics;
  std::map<std::string, double> parts;  // means of the loss's parts
};
// Evaluates a checkpoint (the newest good one of run directory `config.out`,
// or `config.init`) on the test split.
absl::StatusOr<EvalReport> Evaluate(const Program& program,
                                    const kernels::KernelRegistry& kernels,
                                    const TrainConfig& config,
                                    const std::vector<RankResources>& ranks);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_TRAINER_H_
