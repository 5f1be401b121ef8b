// The directory of a run (--out): what lies where, and when it may be used.
#ifndef HALFTONE_RUNTIME_TRAIN_RUN_DIRECTORY_H_
#define HALFTONE_RUNTIME_TRAIN_RUN_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  std::string summary() const { return path_ + "/summary.json"; }
  std::string tuning() const { return path_ + "/tuning.json"; }
  std::string fetches() const { return path_ + "/fetches"; }

  // A directory that holds a run or anything else of somebody's is refused
  // (kUsage). What a launcher writes before its ranks start does not count.
  absl::Status RefuseIfUsed() const;

  // Makes it, with model.htc, strategy.pbtxt and tuning.json (kModel).
  absl::Status Create(const TrainConfig& config,
                      const TuningTable& tuning) const;

  // The tuning table of the run so far; empty if there is none.
  absl::StatusOr<TuningTable> ReadTuning() const;

 private:
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
