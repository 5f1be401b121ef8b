// How a step's feeds reach a device that works asynchronously: the bytes of
// step s+1 cross the bus while step s computes. Private to runtime/exec.
//
//   the caller's bytes -> pinned slot (host, on the caller's thread)
//   pinned slot -> staging arena      (copy_in; waits for the copy below of
//                                      the step before, nothing else)
//   staging arena -> feed arena       (compute, just before the step)
//
// Every block is an image of the feed arena, so that each way is one copy, or
// one of each run of feeds where those between them are kept from the step
// before. The last copy is within the device: 256 images of 3x224x224 bytes are
// 38.5 MB, read and written once, 77 MB or 25 microseconds at 3 TB/s beside a
// step of 25 to 35 milliseconds; across the bus they take 700 microseconds,
// which this hides. Copying straight into the feed arena would have to wait for
// the last reader of a feed (the label's is in the backward pass), and two feed
// arenas in turn would be two graphs of every step.
//
// Feeds stay where they are until the next step's come: a replay reads them.
#ifndef HALFTONE_RUNTIME_EXEC_FEED_STAGING_H_
#define HALFTONE_RUNTIME_EXEC_FEED_STAGING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/device/device.h"
#include "runtime/exec/prepared_plan.h"

namespace halftone {
namespace runtime {

class FeedStaging {
 public:
  FeedStaging(Device* device, ExecutorStreams* streams)
      : device_(device), streams_(streams) {}

  // Makes room for feed arenas of `bytes`; keeps what is large enough. After
  // the arenas were allocated on the compute stream. `micro_batches`: their
  // slots, too.
  absl::Status Allocate(int64_t bytes, bool micro_batches);
  // Those of micro-batches, whose end nobody waits for: Begin waits until the
  // bytes that lay in such a slot have left it.
  static int MicroBatchSlot(int64_t number) {
    return PreparedPlan::kRing + static_cast<int>(number % kMicroBatches);
  }
  // A step's feeds in the order in which they lie: Begin, then Put or Keep of
  // each, then Enqueue. The caller sees to it that the step that used the
  // pinned slot of a step before is done.
  absl::Status Begin(int slot);
  void Put(int64_t offset, absl::Span<const uint8_t> bytes);
  void Keep() { open_ = false; }
  // Enqueues the copies; `staging` and `feeds` begin the arenas.
  absl::Status Enqueue(char* staging, char* feeds);

 private:
  static constexpr int kMicroBatches = 2;

  Device* device_;
  ExecutorStreams* streams_;
  int64_t bytes_ = 0;
  std::unique_ptr<Memory> pinned_;
  char* slot_ = nullptr;  // a pinned image of the feed arena
  struct Run {
    int64_t begin, end;
  };
  std::vector<Run> runs_;  // of feeds that are copied
  bool open_ = false;      // the last run goes on
  std::unique_ptr<Event> arrived_, taken_;
  // By slot of micro-batches: when its bytes have left it; the one in use.
  std::unique_ptr<Event> left_[kMicroBatches];
  bool recorded_[kMicroBatches] = {};
  int micro_ = -1;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_FEED_STAGING_H_
