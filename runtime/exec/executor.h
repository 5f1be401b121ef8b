// One rank on one device: plans, arenas, kernel instances, steps.
//
//   Prepare every binding -> Initialize or WriteCell -> { Feed, Execute,
//   Read at most two steps later } ...
//
// A step is all or nothing: what a rejected step may not change is guarded in
// the program itself. Execute enqueues only: it allocates nothing, looks
// nothing up and does not wait for the device.
#ifndef HALFTONE_RUNTIME_EXEC_EXECUTOR_H_
#define HALFTONE_RUNTIME_EXEC_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"
#include "runtime/exec/step_watcher.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/tuning_table.h"

namespace halftone {
namespace runtime {

struct ExecutorOptions {
  bool deterministic = true;
  bool use_graphs = true;  // --no-graph switches replay off
  bool profile = false;    // train steps run one by one, and each is timed
  // Values that Read shows besides the train entry's results: `kept` of all
  // steps, `fetches` of those that were executed while fetching was on.
  std::vector<std::string> kept, fetches;
  int64_t memory_limit = 0;  // bytes; 0: what the device has
};

// The results of one step, on the host. Views live until three further steps
// have been executed.
class StepView {
 public:
  struct Item {
    absl::string_view name;
    const kernels::TensorDesc* desc;
    const void* data;
  };
  explicit StepView(absl::Span<const Item> items) : items_(items) {}
  absl::Span<const Item> items() const { return items_; }
  bool Has(absl::string_view name) const;
  // A scalar result as double, whatever its dtype; 0 if there is none.
  double Scalar(absl::string_view name) const;
  static double Scalar(const Item& item);

 private:
  absl::Span<const Item> items_;
};

// What one step feeds; the bytes are copied before Execute returns.
struct FeedData {
  std::string name;
  absl::Span<const uint8_t> bytes;  // logical row-major, exactly the slot's
  // The step before was of the same binding and has fed these bytes: they are
  // still on the device, and `bytes` is not read. An error if it was not.
  bool kept = false;
};

// What a step has read, on the host.
struct StepInputs {
  struct Feed {
    std::string name;
    kernels::TensorDesc desc;
    std::string bytes;  // logical row-major
  };
  struct MicroBatch {
    std::string entry;
    SymbolValues symbols{};
    std::vector<Feed> feeds;  // in the plan's order
  };
  std::vector<MicroBatch> micro_batches;  // the last one is the step's own
  std::vector<std::string> cells;         // those asked for, logical row-major
};

// Where a step's numbers stopped being finite.
struct NonFinite {
  std::string op;     // of a fusion the op in its body; "": all is finite
  std::string input;  // what it reads was not finite before: a feed, a cell
  int64_t micro_batch = 0;  // of the step, in which that is so
};

class Executor {
 public:
  // All arguments outlive the executor. Ranks compare the program's hash.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      const Program* program, const kernels::KernelRegistry* kernels,
      Device* device, Communicator* communicator, TuningTable tuning,
      const ExecutorOptions& options);
  virtual ~Executor() = default;

  // A prepared (entry, symbols): planned, its kernels instantiated. Prepare
  // all before the first step; a binding that does not fit is refused
  // (kOutOfMemory) with the largest buffers and what would help. All ranks
  // call it in the same order (ranks may bind different symbols).
  virtual absl::StatusOr<int> Prepare(absl::string_view entry,
                                      const SymbolValues& symbols) = 0;
  virtual const Plan& plan(int binding) const = 0;
  // For a binding that ranks run in different micro-batches: where it holds
  // collectives, it runs without a graph, as all ranks are to capture a
  // collective or none.
  virtual void CaptureNoCollectives(int binding) = 0;

  // Runs `init` with the seed, then `derive`, and broadcasts rank 0's state.
  virtual absl::Status Initialize(int64_t seed) = 0;
  // Recomputes the derived cells: after cells were written.
  virtual absl::Status Derive() = 0;
  // Gives all ranks rank 0's cells; all ranks call it together.
  virtual absl::Status BroadcastState() = 0;

  // Enqueues a step of a prepared binding and returns its ticket: 0, 1, ...
  virtual absl::StatusOr<int64_t> Execute(int binding,
                                          absl::Span<const FeedData> feeds) = 0;
  // Enqueues a micro-batch that is not the last of its step: a binding of the
  // entry accumulate, which has no results.
  virtual absl::Status Accumulate(int binding,
                                  absl::Span<const FeedData> feeds) = 0;
  // Whether steps that are executed from now on bring what was to be fetched to
  // the host. At first they do.
  virtual void SetFetching(bool fetching) = 0;
  // What these copies took, by the host's clock.
  virtual double fetch_seconds() const = 0;
  // Waits for the ticket's results. At most two steps may be unread.
  virtual absl::StatusOr<StepView> Read(int64_t ticket) = 0;
  // Names the op in which what the finite check refuses, or else the loss,
  // stopped being finite: by running the last executed step, with all of its
  // micro-batches, again from its kept feeds, clock and scale, and putting the
  // state back. All ranks call it together.
  virtual absl::StatusOr<NonFinite> FirstNonFinite() = 0;

  // Cells in logical row-major order; they synchronise with the device. Of a
  // sharded cell all ranks call ReadCell together, and each gets the whole;
  // what rank 0 writes is there after BroadcastState.
  virtual absl::Status ReadCell(CellId cell, std::string* bytes) = 0;
  virtual absl::Status WriteCell(CellId cell, absl::string_view bytes) = 0;

  virtual const Program& program() const = 0;
  virtual const TuningTable& tuning() const = 0;
  virtual Communicator& communicator() = 0;
  // Bytes allocated on the device by now, and the plans' largest prediction.
  virtual int64_t allocated_bytes() const = 0;
  virtual int64_t planned_bytes() const = 0;
  // Milliseconds of the last executed step, with all of its micro-batches, by
  // role, by the host's clock; 0 on a device that works asynchronously.
  struct Times {
    double forward_backward = 0, communicate = 0, update = 0;
  };
  virtual Times times() const = 0;
  // When a step of the plan ran, by its stream, in milliseconds since Execute
  // began its work.
  struct Span {
    double begin = 0, end = 0;
  };
  // Of the last read step, in the plan's order; empty unless `profile` is set
  // and the entry is train.
  virtual absl::Span<const Span> spans() const = 0;

  // Runs a step with these feeds, shows its work to `watcher` and puts the
  // state back: it commits nothing and has no ticket. Waits for the device, as
  // it allocates. All ranks call it together, between steps that are read.
  virtual absl::Status Watch(int binding, absl::Span<const FeedData> feeds,
                             StepWatcher* watcher) = 0;
  // What the last executed step and its micro-batches were fed, and these cells
  // as they found them: of class `always`, or not changed since (the step was
  // rejected). All ranks call it together.
  virtual absl::StatusOr<StepInputs> LastInputs(
      absl::Span<const CellId> cells) = 0;
  // Enqueues, behind the last step, a binding of the entry average, which has
  // neither feeds nor results. All ranks call it together.
  virtual absl::Status Average(int binding) = 0;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_EXECUTOR_H_
