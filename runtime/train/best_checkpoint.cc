#include "runtime/train/best_checkpoint.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "runtime/train/progress.h"
#include "runtime/train/run_directory.h"

namespace halftone {
namespace runtime {

int64_t BestStep(const Manifest& manifest) {
  // Numbers that are no counts know of none.
  const absl::StatusOr<Progress> progress = FromNumbers(manifest.numbers);
  return progress.ok() ? progress->best_step : -1;
}

absl::StatusOr<std::string> BestCheckpoint(const std::string& run) {
  const std::string directory = RunDirectory(run).checkpoints();
  std::vector<std::string> skipped;
  HT_ASSIGN_OR_RETURN(const Checkpoint newest,
                      ReadLatestCheckpoint(directory, &skipped));
  const int64_t best = BestStep(newest.manifest);
  if (best < 0) {
    return CheckpointError(run, ": no eval was made up to step ",
                           newest.manifest.step,
                           ", so that none is the best; leave --best away for "
                           "the newest, or run with --eval-every");
  }
  std::vector<std::string> steps;
  for (const CheckpointInfo& info : ListCheckpoints(directory)) {
    if (info.step == best) return info.path;
    steps.push_back(absl::StrCat(info.step));
  }
  return CheckpointError(
      run, ": the best eval was after step ", best,
      ", of which there is no checkpoint (there are: ",
      absl::StrJoin(steps, ", "),
      "); eval one of them, or run with the same --checkpoint-every and "
      "--eval-every");
}

}  // namespace runtime
}  // namespace halftone
