// The executor. Private to runtime/exec: executor.cc has the steps,
// executor_state.cc the cells, the startup and the replay of a step.
#ifndef HALFTONE_RUNTIME_EXEC_EXECUTOR_IMPL_H_
#define HALFTONE_RUNTIME_EXEC_EXECUTOR_IMPL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/exec/arenas.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/feed_staging.h"
#include "runtime/exec/prepared_plan.h"

namespace halftone {
namespace runtime {

// Each entry point makes the device the calling thread's own: there may be
// others in the process, and a thread that drives several executors.
class ExecutorImpl : public Executor {
 public:
  ExecutorImpl(const Program* program, const kernels::KernelRegistry* kernels,
               Device* device, Communicator* communicator, TuningTable tuning,
               const ExecutorOptions& options);
  ~ExecutorImpl() override;

  absl::Status Start();

  absl::StatusOr<int> Prepare(absl::string_view entry,
                              const SymbolValues& symbols) override;
  const Plan& plan(int binding) const override {
    return plans_[binding]->plan();
  }
  void CaptureNoCollectives(int binding) override {
    plans_[binding]->CaptureNoCollectives();
  }
  absl::Status Initialize(int64_t seed) override;
  absl::Status Derive() override;
  absl::Status BroadcastState() override;
  absl::StatusOr<int64_t> Execute(int binding,
                                  absl::Span<const FeedData> feeds) override;
  absl::Status Accumulate(int binding,
                          absl::Span<const FeedData> feeds) override;
  absl::Status Average(int binding) override;
  void SetFetching(bool fetching) override { fetching_ = fetching; }
  double fetch_seconds() const override { return fetch_seconds_; }
  absl::StatusOr<StepView> Read(int64_t ticket) override;
  absl::Status Watch(int binding, absl::Span<const FeedData> feeds,
                     StepWatcher* watcher) override;
  absl::StatusOr<StepInputs> LastInputs(
      absl::Span<const CellId> cells) override;
  absl::StatusOr<NonFinite> FirstNonFinite() override;
  absl::Status ReadCell(CellId cell, std::string* bytes) override;
  absl::Status WriteCell(CellId cell, absl::string_view bytes) override;

  const Program& program() const override { return *program_; }
  const TuningTable& tuning() const override { return tuning_; }
  Communicator& communicator() override { return *communicator_; }
  int64_t allocated_bytes() const override { return arenas_.allocated_bytes(); }
  int64_t planned_bytes() const override { return arenas_.reserved_bytes(); }
  Times times() const override { return times_; }
  absl::Span<const Span> spans() const override { return spans_; }

 private:
  absl::Status WriteSlice(const Slice& slice, absl::string_view physical);
  absl::Status SpreadWritten();
  // An error unless the device has room for what is reserved so far; `what`
  // was reserved last, for `plan`.
  absl::Status CheckFits(const std::string& what, const Plan& plan);
  absl::Status Materialize();
  absl::Status WriteConstants();
  absl::Status RunStartup(absl::string_view entry, int64_t seed);
  // Brings the feeds into the plan's slots, by way of ring slot `slot` where
  // the device works asynchronously.
  absl::Status TakeFeeds(PreparedPlan& plan, absl::Span<const FeedData> feeds,
                         int slot);
  // What is fed into slot `i`, whichever place it has in `feeds`; an error if
  // it is missing, of another size, or said to be there and is not: `before`
  // is whose feeds are.
  absl::StatusOr<const FeedData*> FindFeed(const PreparedPlan& prepared,
                                           const PreparedPlan* before,
                                           absl::Span<const FeedData> feeds,
                                           size_t i) const;
  absl::Status RunStep(PreparedPlan& plan, bool last);
  // With what is fetched, which is timed, where steps fetch.
  absl::Status EnqueueResults(PreparedPlan& plan, int slot);
  // What a micro-batch that is not the last was fed, for a replay of its step.
  void KeepMicroBatch(int binding, absl::Span<const FeedData> feeds);
  // What lies in the plan's slots, in its order.
  absl::StatusOr<std::vector<std::string>> ReadFeeds(const PreparedPlan& plan);
  absl::Status WriteFeeds(const PreparedPlan& plan,
                          const std::vector<std::string>& feeds);
  // Runs with the feeds that are there.
  absl::Status RunWatched(PreparedPlan& plan, StepWatcher* watcher);
  // The last step with its micro-batches.
  absl::Status RunAgain(StepWatcher* watcher);
  // Puts the cells back, too.
  absl::Status WithStateKept(absl::FunctionRef<absl::Status()> run);
  absl::Status Run(PreparedPlan& plan, const PreparedPlan::Prologue& prologue);
  // For Communicator::OnAbort.
  bool DropGraphs();
  // Waits for all streams, for a bounded time. Once a run has failed a wait
  // that the communicator looks after ends at once; this one asks the device.
  void AwaitAborted();
  // Waits until the step of this ticket is done, and so all before it.
  absl::Status Await(int64_t ticket);
  kernels::BindContext Bind() const;
  absl::Status Use() { return device_->Use(); }

  const Program* program_;
  const kernels::KernelRegistry* kernels_;
  Device* device_;
  Communicator* communicator_;
  TuningTable tuning_;
  ExecutorOptions options_;
  StateLayout state_;
  // Sharded cells that were written, by cell, until ranks take their parts.
  std::map<int, std::string> unspread_;
  ExecutorStreams streams_;
  Arenas arenas_;
  FeedStaging staging_;
  std::vector<std::unique_ptr<PreparedPlan>> plans_;
  bool fetching_ = true;
  double fetch_seconds_ = 0;
  bool resolved_ = false;  // pointers of all plans are up to date
  // Cells of class `always` before the last step, for its replay.
  std::unique_ptr<Memory> always_before_;
  int last_binding_ = -1;
  // Of the step under way, or else of the last one: what micro-batches before
  // its last were fed, `earlier_` of them; what others held serves again.
  struct MicroBatch {
    int binding = -1;
    std::vector<std::string> feeds;  // in the plan's order
  };
  const bool merges_;  // steps have micro-batches
  std::vector<MicroBatch> micro_batches_;
  size_t earlier_ = 0;
  bool step_begun_ = false;
  // Whose feeds lie in the feed arena; null: nobody's.
  const PreparedPlan* fed_ = nullptr;
  int64_t tickets_ = 0;
  int64_t done_ = 0;  // steps that are known to be done
  int ticket_binding_[PreparedPlan::kRing] = {-1, -1, -1};
  int64_t accumulated_ = 0;     // micro-batches
  Times times_, times_before_;  // of the last step; of micro-batches since
  absl::Span<const Span> spans_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_EXECUTOR_IMPL_H_
