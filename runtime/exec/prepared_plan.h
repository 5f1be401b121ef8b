// A plan with its kernels instantiated and its pointers resolved: what
// Execute walks. Private to runtime/exec.
#ifndef HALFTONE_RUNTIME_EXEC_PREPARED_PLAN_H_
#define HALFTONE_RUNTIME_EXEC_PREPARED_PLAN_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"
#include "runtime/exec/arenas.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

struct ExecutorStreams {
  std::unique_ptr<Stream> compute, communicate, copy_out;
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

  // Host or device addresses of the feeds, in the plan's order.
  absl::Span<char* const> feeds() const { return feeds_; }

  // Enqueues all steps. `after`, if set, is called after each kernel step
  // (for the replay of a rejected step).
  using AfterStep =
      std::function<absl::Status(const Step&, absl::Span<void* const> outputs)>;
  absl::Status Enqueue(Communicator& communicator, const AfterStep* after);

  // Copies the results to ring slot `slot` behind the compute stream.
  absl::Status EnqueueResults(int slot);
  absl::StatusOr<StepView> Results(int slot);
  static constexpr int kRing = 3;

  const Executor::Times& times() const { return times_; }
  std::unique_ptr<Graph>& graph() { return graph_; }
  // True once after each Resolve: a device without graphs is asked once.
  bool MayCapture() { return std::exchange(may_capture_, false); }

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
  absl::Status EnqueueStep(const Ready& ready, Communicator& communicator);

  Plan plan_;
  Device* device_;
  ExecutorStreams* streams_;
  std::vector<Ready> ready_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<char*> feeds_;
  char* result_block_ = nullptr;  // in the result arena
  std::unique_ptr<Memory> ring_;  // pinned, kRing times the result arena
  std::vector<StepView::Item> items_[kRing];
  std::unique_ptr<Event> copied_[kRing];
  std::unique_ptr<Event> computed_;
  std::unique_ptr<Graph> graph_;
  bool may_capture_ = false;
  Executor::Times times_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_PREPARED_PLAN_H_
