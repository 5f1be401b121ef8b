// The steps of one rank. Two steps are under way at most; what step s says is
// acted on after step s+2, or at the end of an epoch, so that all ranks, which
// decide alike, stop after the same step.
#ifndef HALFTONE_RUNTIME_TRAIN_RANK_LOOP_H_
#define HALFTONE_RUNTIME_TRAIN_RANK_LOOP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "runtime/profile/profile.h"
#include "runtime/train/cadence.h"
#include "runtime/train/feeds.h"
#include "runtime/train/local_steps.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/reporter.h"
#include "runtime/train/stop_rule.h"
#include "runtime/train/timing.h"
#include "runtime/train/totals.h"

namespace halftone {
namespace runtime {

class RankLoop {
 public:
  // `rank` is set up; `reporter` is null on all ranks but rank 0.
  RankLoop(Rank* rank, Reporter* reporter);

  // Trains to the end, or until a signal or the stop rule (kDiverged). On OK
  // the run's last checkpoint is written; if it could not be, all ranks get
  // the error (kCheckpoint). `*agreed`: the error is known to all ranks.
  absl::Status Run(bool* agreed);

  const RunTimes& times() const { return times_; }
  // Of the steps with a whole batch; null where none was asked for.
  const Profile* profile() const { return profile_.get(); }
  // Whether the steps ended early because a rank asked for it; equal on all.
  bool stopped() const { return finished_; }

 private:
  // A step that is enqueued and not read yet.
  struct Pending {
    int64_t ticket = 0, step = 0, epoch = 0;
    int64_t next_epoch = 0, next_sample = 0;  // the cursor after it
    bool epoch_end = false;
    bool logs = false, fetches = false;  // it has a step event, with fetches
    int binding = -1;
    bool equal = true;  // all ranks have the same parameters after it
    HostTimes host;
  };
  // What has come due since ranks last paused.
  struct Due {
    bool epoch_end = false, eval = false, checkpoint = false, compare = false;
    bool any() const { return epoch_end || eval || checkpoint || compare; }
  };

  absl::Status Train();
  absl::Status OneStep(const Batch& batch);
  absl::Status Enqueue(const Batch& batch);
  // All micro-batches of the step; the ticket of the last one, whose binding is
  // `last`.
  absl::StatusOr<int64_t> ExecuteParts(const Batch& batch, int last);
  // Behind the step, if ranks have gone on by themselves for long enough.
  absl::Status Average(Pending& pending);
  absl::Status ReadOldest();
  absl::Status Drain();
  // Whether the step has an event, and shows what is fetched.
  void DecideWhatToLog(Pending& pending) const;
  void LogStep(const StepRecord& record, const StepView& view, bool fetches);
  // After the last step enqueued has been read.
  absl::Status AtBoundary();
  void NoteDue(const Pending& enqueued);
  absl::Status AtEnd(bool* agreed);
  absl::Status Evaluate();
  absl::Status WriteCheckpoint(bool last);
  absl::Status Compare();  // the ranks' states
  absl::Status Diverged();
  absl::StatusOr<NonFinite> FirstNonFiniteOp();
  // While capsules are wanted, each step's verdict is waited for.
  absl::Status KeepRejected();
  // All that the step that was executed last has read, which was rejected, goes
  // into the run directory; `found`: what it was rejected for. A run goes on
  // without. Rank 0 gets the capsule's path; empty: there is none.
  absl::StatusOr<std::string> WriteCapsule(const std::string& why,
                                           const NonFinite& found);
  float Requests();
  // Tells the supervisor and the console what comes now; `of`: of how much.
  void Begin(const char* stage, int64_t of = 0);
  int64_t epochs() const { return config_.strategy.train().epochs(); }
  bool at_end() const { return progress_.epoch >= epochs(); }

  Rank& rank_;
  Reporter* reporter_;
  const TrainConfig& config_;
  Executor& executor_;
  Progress& progress_;
  int64_t steps_per_epoch_, samples_per_epoch_, total_steps_;

  ImplicitFeeds implicit_;
  FeedList feeds_;
  std::optional<FeedList> accumulate_feeds_;  // none: no micro-batches
  LocalSteps local_steps_;
  std::unique_ptr<BatchReader> reader_;
  std::array<Pending, 3> pending_;
  int64_t enqueued_ = 0, read_ = 0;  // steps of this loop
  int64_t attempted_ = 0;            // steps enqueued since the run began

  StopRuleWatch stop_rule_;
  bool ranks_differ_ = false;
  int64_t capsules_ = 0;        // that were written
  int64_t capsule_step_ = -1;   // the last one's
  bool last_rejected_ = false;  // the step that was read last
  bool diverged_ = false, rejected_since_ = true, finished_ = false;
  Asked asked_;
  Due due_;
  CadenceClock eval_clock_, checkpoint_clock_, compare_clock_;
  int64_t checkpoint_step_ = -1;
  SoundCheckpoints sound_checkpoints_;  // rank 0
  absl::Status last_checkpoint_;

  RunTimes times_;
  Stopwatch step_watch_;
  double waited_ = 0;  // seconds for data, at the last step's end
  std::unique_ptr<Profile> profile_;
  int profiled_binding_ = -1;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RANK_LOOP_H_
