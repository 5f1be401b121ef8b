// Rejected steps, kept so that they can be run again.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/shell_word.h"
#include "runtime/capsule/capsule.h"
#include "runtime/train/long_work.h"
#include "runtime/train/rank_loop.h"

namespace halftone {
namespace runtime {

absl::Status RankLoop::KeepRejected() {
  HT_RETURN_IF_ERROR(Drain());
  if (!last_rejected_) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const NonFinite found, FirstNonFiniteOp());
  HT_ASSIGN_OR_RETURN(const std::string path, WriteCapsule("rejected", found));
  if (!path.empty() && reporter_ != nullptr) {
    reporter_->Warn(absl::StrCat("step ", attempted_,
                                 ": kept: halftone replay ", ShellWord(path)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RankLoop::WriteCapsule(const std::string& why,
                                                   const NonFinite& found) {
  // Rank 0 alone needs a run directory.
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> outs,
                      rank_.communicator().AllGather(config_.out));
  if (outs[0].empty()) return std::string();
  const std::string directory = absl::StrCat(config_.out, "/", kCapsules);
  const std::string path = absl::StrCat(directory, "/step-", attempted_);
  if (std::exchange(capsule_step_, attempted_) == attempted_) return path;
  ++capsules_;
  const Doing doing("keeping a rejected step");
  HT_ASSIGN_OR_RETURN(Capsule capsule, TakeCapsule(executor_));
  capsule.facts.step = attempted_;
  capsule.facts.why = why;
  capsule.facts.threads = rank_.threads;
  capsule.facts.deterministic = config_.deterministic;
  capsule.facts.found = found;
  capsule.model = config_.model_bytes;
  absl::Status written;
  const auto write = [&] {
    written = rank_.lock.Check();
    if (written.ok()) written = runtime::WriteCapsule(directory, capsule);
    return absl::OkStatus();
  };
  HT_RETURN_IF_ERROR(rank_.is_zero()
                         ? DoLongWork(rank_.communicator(), write)
                         : DoLongWork(rank_.communicator(), nullptr));
  if (written.ok()) return path;
  reporter_->Warn(
      absl::StrCat("step ", attempted_, ": no capsule: ", written.message()));
  return std::string();
}

}  // namespace runtime
}  // namespace halftone
