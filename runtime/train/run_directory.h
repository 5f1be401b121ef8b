// The directory of a run (--out): what lies where, and when it may be used.
#ifndef HALFTONE_RUNTIME_TRAIN_RUN_DIRECTORY_H_
#define HALFTONE_RUNTIME_TRAIN_RUN_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/disk/directory_lock.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/plan/tuning_table.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

class RunDirectory {
 public:
  // Empty: there is none, and nothing is written.
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}

  bool exists() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/ckpt"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string tuning() const { return path_ + "/tuning.json"; }
  std::string fetches() const { return path_ + "/fetches"; }

  // A directory that holds a run or anything else of somebody's is refused
  // (kUsage), and so is one that a run writes to now. What a launcher writes
  // before its ranks start does not count.
  absl::Status RefuseIfUsed() const;

  // Only the second of these.
  absl::Status RefuseIfInUse() const;

  // For one run alone, until the lock's end; makes the directory. Without
  // `resume` it must be new or empty. Errors: as of RefuseIfUsed, with `resume`
  // too where somebody else's run goes on there or links stand in for what a
  // run writes to (kUsage); kModel.
  absl::StatusOr<DirectoryLock> Take(bool resume) const;

  // Makes it, with model.htc, strategy.pbtxt and tuning.json (kModel).
  absl::Status Create(const TrainConfig& config,
                      const TuningTable& tuning) const;

  // The tuning table of the run so far; empty if there is none.
  absl::StatusOr<TuningTable> ReadTuning() const;

 private:
  absl::Status RefuseIfNotEmpty() const;

  std::string path_;
};

// Tensors by name from a .safetensors file, a run directory (its newest good
// checkpoint) or one checkpoint. Errors (kCheckpoint) name what was looked for.
// Damaged newer checkpoints that were passed over are named in `*said`.
absl::StatusOr<Checkpoint> ReadAnyState(const std::string& path,
                                        std::vector<std::string>* said);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RUN_DIRECTORY_H_
