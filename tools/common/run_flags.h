// What `run`, `eval` and `predict` share: where the ranks of this process are,
// what they are fed, and the run's settings out of a compiled model.
#ifndef HALFTONE_TOOLS_COMMON_RUN_FLAGS_H_
#define HALFTONE_TOOLS_COMMON_RUN_FLAGS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"
#include "runtime/launch/status_page.h"
#include "runtime/train/trainer.h"
#include "tools/common/command_line.h"

namespace halftone {
namespace tools {

struct RankFlags {
  int ranks = 0;  // as threads of this process; 0: what the launcher says
  std::string gpus;
  int threads = 0;  // compute threads of a rank; 0: see ThreadsPerRank
  double connect_timeout = 60, timeout = 60;  // seconds
};
// --ranks, --gpus, --threads and how long ranks wait for each other.
void AddRankFlags(Verb verb, RankFlags* flags);
// --gpus and --threads, of a verb that runs on one rank.
void AddDeviceFlags(Verb verb, RankFlags* flags);
// --threads.
Flag AddThreadsFlag(Verb verb, int* threads);
// What --threads `asked` for, else OMP_NUM_THREADS (which our launcher sets),
// else an equal share of the cores for each of `ranks_here` ranks of this
// machine.
int ThreadsPerRank(int asked, int ranks_here);
// Of each rank of this process.
int ThreadsHere(const RankFlags& flags);
// --max-unpack.
void AddMaxUnpackFlag(Verb verb, runtime::TrainConfig* config);
// Returns --data, which is required.
Flag AddDataFlags(Verb verb, runtime::TrainConfig* config);
// --init, --best.
void AddParameterFlags(Verb verb, bool* best, runtime::TrainConfig* config);

// Where the parameters of the model at `path` are (config->init, ->out): named
// by --init, a checkpoint, the newest one of a run or its best one. Neither is
// set for a model alone. Errors (kUsage): --best of what is no run.
absl::Status FindParameters(absl::string_view verb, const std::string& path,
                            bool best, runtime::TrainConfig* config);

// The ranks of this process with what they own; communicators end together.
struct LocalRanks {
  LocalRanks() = default;
  LocalRanks(LocalRanks&&) = default;
  ~LocalRanks();

  std::vector<std::unique_ptr<runtime::Device>> devices;
  std::vector<std::unique_ptr<runtime::Communicator>> communicators;
  std::unique_ptr<runtime::StatusReporter> reporter;
  std::vector<runtime::RankResources> resources;
  // That run on these devices.
  const kernels::KernelRegistry* kernels = nullptr;
};
// Threads of this process (--ranks, --gpus), or the one rank that a launcher's
// variables name, on devices of `target`. Errors: kUsage (both, or
// contradictory variables), kDevice (--gpus where there are none),
// kCommunication (a rank that never arrives).
absl::StatusOr<LocalRanks> MakeRanks(const RankFlags& flags,
                                     const std::string& target);

// The target of a run that names none: that of the GPUs it is told to use,
// "cpu" for plain ranks of ours, else this machine's.
absl::StatusOr<std::string> TargetOfRun(const RankFlags& flags);

// What a run should be told of its threads: that virtual shards have one, and
// that a rank needs more than train.memory_budget, which was met for other
// threads, ranks or samples.
void NoteThreads(const CompiledModel& model, const RankFlags& flags,
                 const LocalRanks& ranks, runtime::TrainConfig* config);

// Strategy and identity of the model, which outlives the config's use; data,
// out and cadences stay as they are.
absl::Status FillConfig(const CompiledModel& model,
                        runtime::TrainConfig* config);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_RUN_FLAGS_H_
