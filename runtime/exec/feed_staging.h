// How a step's feeds reach a device that works asynchronously: the bytes of
// step s+1 cross the bus while step s computes. Private to runtime/exec.
//
//   the caller's bytes -> pinned slot (host, on the caller's thread)
//   pinned slot -> staging arena      (copy_in; waits for the copy below of
//                                      the step before, nothing else)
//   staging arena -> feed arena       (compute, just before the step)
//
// Every block is an image of the feed arena, so that each way is one copy, and
// the last is within the device: 256 images of 3x224x224 bytes are 38.5 MB,
// read and written once, 77 MB or 25 microseconds at 3 TB/s beside a step of
// 25 to 35 milliseconds; across the bus they take 700 microseconds, which this
// hides. Copying straight into the feed arena would have to wait for the last
// reader of a feed (the label's is in the backward pass), and two feed arenas
// in turn would be two graphs of every step.
//
// Feeds stay where they are until the next step's come: a replay reads them.
#ifndef HALFTONE_RUNTIME_EXEC_FEED_STAGING_H_
#define HALFTONE_RUNTIME_EXEC_FEED_STAGING_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "runtime/device/device.h"
#include "runtime/exec/prepared_plan.h"

namespace halftone {
namespace runtime {

class FeedStaging {
 public:
  FeedStaging(Device* device, ExecutorStreams* streams)
      : device_(device), streams_(streams) {}

  // Makes room for feed arenas of `bytes`; keeps what is large enough. After
  // the arenas were allocated on the compute stream.
  absl::Status Allocate(int64_t bytes);
  // A pinned image of the feed arena. The caller sees to it that the step
  // that used the slot before is done.
  char* Slot(int slot) const {
    return static_cast<char*>(pinned_->data()) + slot * bytes_;
  }
  // Enqueues the two copies; `staging` and `feeds` begin the arenas.
  absl::Status Enqueue(int slot, char* staging, char* feeds, int64_t bytes);

 private:
  Device* device_;
  ExecutorStreams* streams_;
  int64_t bytes_ = 0;
  std::unique_ptr<Memory> pinned_;
  std::unique_ptr<Event> arrived_, taken_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_FEED_STAGING_H_
