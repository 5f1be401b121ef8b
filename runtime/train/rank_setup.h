// What a rank has before its first step.
#ifndef HALFTONE_RUNTIME_TRAIN_RANK_SETUP_H_
#define HALFTONE_RUNTIME_TRAIN_RANK_SETUP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/disk/directory_lock.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/log/pulse.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/open_run_data.h"
#include "runtime/train/progress.h"
#include "runtime/train/run_plans.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// Samples per step of all ranks. Errors (kModel): none given, or more than
// the data holds (`samples`).
absl::StatusOr<int64_t> GlobalBatch(const TrainConfig& config, int world_size,
                                    int64_t samples);

// A number of the manifest: 1 where the loss scale was dynamic.
inline constexpr char kDynamicScaling[] = "dynamic_scaling";
// One of its texts: Dataset::Marks of what was trained on; not there if the
// data has none.
inline constexpr char kDataMarks[] = "data";
// Another: its classes by label, a string literal's content each (names of
// folders need not be UTF-8), joined by slashes.
inline constexpr char kClasses[] = "classes";
std::string ClassesToText(const std::vector<std::string>& classes);
std::vector<std::string> ClassesFromText(absl::string_view text);
// Another number: compute threads per rank, on which the bits depend.
inline constexpr char kThreads[] = "threads";

// The texts whose names begin so: RunStarted::settings.
inline constexpr char kSetting[] = "setting.";

// What all ranks of a process share.
struct RunInputs {
  const Program* program = nullptr;
  const kernels::KernelRegistry* kernels = nullptr;
  const TrainConfig* config = nullptr;
  const absl::StatusOr<RunData>* data = nullptr;
  // Rank 0's, if it is in this process.
  Console* console = nullptr;
  Activity* activity = nullptr;
  int ranks_here = 1;  // of this process
};

// Where a run starts from; rank 0 reads it, the others hear of it.
struct StartingPoint {
  bool resumed = false;
  std::map<std::string, double> numbers;  // of the manifest, if resumed
  TuningTable tuning;
  // Rank 0 only: the state to load (resume or --init), and what to say.
  std::optional<Checkpoint> state;
  std::string from;  // where it lies: a run directory or a file
  std::vector<std::string> said;
  bool fresh_scale = false;  // the checkpoint's scale and counters are left
  // By label, where the parameters were trained; rank 0's, empty if not known.
  std::vector<std::string> classes;
};

struct Rank {
  DirectoryLock lock;  // on the run directory (rank 0); its end is the last
  RunInputs inputs;
  RankResources resources;
  bool leads_process = false;  // the first rank of its process
  SamplerOptions sampler;      // of the training data
  int threads = 1;             // compute threads of the device
  std::unique_ptr<Executor> executor;
  TrainingBindings bindings;
  std::unique_ptr<Evaluator> evaluator;  // null: nothing to evaluate
  Progress progress;
  StartingPoint start;

  const TrainConfig& config() const { return *inputs.config; }
  const RunData& data() const { return **inputs.data; }
  Communicator& communicator() const { return *resources.communicator; }
  const Bindings& BindingsAt(int64_t step) const {
    for (const StepStage& stage : bindings.stages) {
      if (step < stage.end) return stage.bindings;
    }
    return bindings.steps;
  }
  bool is_zero() const { return sampler.rank == 0; }
  // How many micro-batches a step has at most.
  int64_t merged_steps() const {
    return MergedSteps(*inputs.program, config().strategy.dist());
  }
};

// A collective. Opens, checks and reads what a run needs; on an error of any
// rank all fail, with that rank's message; `*agreed` says that they know.
// `train`: with the train entry; else for an eval alone.
absl::Status SetUpRank(Rank& rank, bool train, bool* agreed);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RANK_SETUP_H_
