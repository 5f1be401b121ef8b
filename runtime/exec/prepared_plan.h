// A plan with its kernels instantiated and its pointers resolved: what
// Execute walks. Private to runtime/exec.
#ifndef HALFTONE_RUNTIME_EXEC_PREPARED_PLAN_H_
#define HALFTONE_RUNTIME_EXEC_PREPARED_PLAN_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/communicator.h"
#include "runtime/exec/arenas.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/step_timers.h"
#include "runtime/exec/step_watcher.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

struct ExecutorStreams {
  std::unique_ptr<Stream> compute, communicate, copy_in, copy_out;
};

class PreparedPlan {
 public:
  // Instantiates the kernels of a plan.
  static absl::StatusOr<std::unique_ptr<PreparedPlan>> Create(
      Plan plan, const kernels::BindContext& bind, Device* device,
      ExecutorStreams* streams);

  const Plan& plan() const { return plan_; }
  // Points the steps into the arenas; again whenever these moved.
  void Resolve(const Arenas& arenas);

  // Addresses of the feeds on the device, in the plan's order.
  absl::Span<char* const> feeds() const { return feeds_; }

  // A copy before the first step, part of what is captured.
  struct Prologue {
    void* to = nullptr;
    const void* from = nullptr;
    int64_t bytes = 0;
  };
  // Enqueues the prologue and all steps: one by one the first time and where
  // `use_graph` is false, from the second time on captured once and replayed.
  //
  // Not the first time: CUDA loads a kernel's code when it is first launched,
  // NCCL connects when a collective is first enqueued, libraries make what
  // they keep; all of them allocate and wait, which a capture forbids. Nor in
  // a run of its own with commits suppressed: that takes feeds which no loss
  // rejects, a saved and restored state, and all ranks in it, to save one
  // step's launches; and a binding that comes once is never captured so.
  absl::Status Run(Communicator& communicator, const Prologue& prologue,
                   bool use_graph);
  // From now on Run does not capture a plan that holds collectives.
  void CaptureNoCollectives() { eager_collectives_ = true; }
  // Only while capturing is a graph held that cannot be dropped.
  bool capturing() const { return capturing_; }
  // Run goes on one by one. What was launched ends by itself.
  void DropGraph() {
    graph_.reset();
    may_capture_ = false;
  }

  // Enqueues all steps; `watcher` is null but for a step that is watched.
  absl::Status Enqueue(Communicator& communicator, StepWatcher* watcher);

  // Copies the results to ring slot `slot` behind the compute stream: what is
  // fetched only if `fetch`.
  absl::Status EnqueueResults(int slot, bool fetch);
  // Waits for what EnqueueResults put behind this slot.
  absl::Status AwaitResults(int slot);
  StepView Results(int slot) const {
    return StepView(
        absl::MakeConstSpan(items_[slot]).subspan(0, copied_items_[slot]));
  }
  static constexpr int kRing = 3;

  const Executor::Times& times() const { return times_; }

  // From now on all steps are timed; they are to run one by one.
  absl::Status TimeSteps();
  StepTimers* timers() { return timers_.get(); }  // null: they are not

 private:
  PreparedPlan(Plan plan, Device* device, ExecutorStreams* streams)
      : plan_(std::move(plan)), device_(device), streams_(streams) {}
  absl::Status Instantiate(const kernels::BindContext& bind);
  absl::Status PrepareRing();

  struct Ready {
    const Step* step = nullptr;
    std::unique_ptr<kernels::KernelInstance> instance;
    Stream* stream = nullptr;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;
    int part = 0;  // of Times: 0 forward and backward, 1 communicate, 2 update
  };
  absl::Status Capture(Communicator& communicator, const Prologue& prologue);
  absl::Status EnqueueAll(Communicator& communicator, const Prologue& prologue);
  absl::Status EnqueueStep(const Ready& ready, Communicator& communicator);
  absl::Status EnqueueShards(const Ready& ready, Communicator& communicator);
  absl::Status EnqueueTimed(const Ready& ready, Communicator& communicator);
  absl::Status EnqueueSteps(Communicator& communicator, StepWatcher* watcher);
  absl::Status Follow(Stream& stream, Stream& leader, Event& event);

  Plan plan_;
  Device* device_;
  ExecutorStreams* streams_;
  std::vector<Ready> ready_;
  bool communicates_ = false;  // a step is on the communicate stream
  bool holds_collectives_ = false;
  bool eager_collectives_ = false;
  std::vector<std::unique_ptr<Event>> events_;
  std::unique_ptr<Event> fork_, join_;
  std::vector<char*> feeds_;
  char* result_block_ = nullptr;  // in the result arena
  std::unique_ptr<Memory> ring_;  // pinned, kRing times the result arena
  // Those of results that are always copied come first, in the arena, too.
  std::vector<StepView::Item> items_[kRing];
  size_t copied_items_[kRing] = {};
  size_t always_items_ = 0;
  int64_t always_bytes_ = 0;
  std::unique_ptr<Event> copied_[kRing];
  std::unique_ptr<Event> computed_;
  std::unique_ptr<Graph> graph_;
  bool ran_ = false;          // libraries have what they need
  bool may_capture_ = false;  // true after each Resolve: asked for once
  bool capturing_ = false;
  Executor::Times times_;
  std::unique_ptr<StepTimers> timers_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_PREPARED_PLAN_H_
