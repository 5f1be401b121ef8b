// A device for tests: host memory, and a log of everything that was enqueued.
//
// Capture follows CUDA's rules: what is enqueued is recorded and not done, a
// stream joins by waiting for an event recorded in the capture, no dependency
// but a stream's own order crosses the capture's border, every stream that
// joined must be waited for by the captured one at the end, and the host must
// not wait for or ask about captured work.
//
// Likewise a thread has one current device (0 at first) and what it enqueues
// elsewhere is an error; copies between streams and pageable memory (all that
// no fake device gave out) have read or written it when they return.
#ifndef HALFTONE_RUNTIME_DEVICE_FAKE_DEVICE_H_
#define HALFTONE_RUNTIME_DEVICE_FAKE_DEVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

struct FakeDeviceOptions {
  int ordinal = 0;
  int64_t memory_bytes = int64_t{1} << 30;  // Allocate fails beyond
  bool has_graphs = true;  // Capture records and Launch replays the log
  // Work is put off until the host waits for it, and then only what streams
  // and events demand is done: whatever order they allow too much shows. Else
  // it is done when it is enqueued.
  bool deferred = false;
  // The stream of a deferred device that is never behind: its work is done as
  // soon as events allow.
  std::string hasty;
};

class FakeDevice : public Device {
 public:
  // "compute: copy 64", "compute: record e0", "graph g0: launch", ...
  // Lines of a launched graph follow its launch, each after "graph g0: ".
  // Nothing is logged while capturing but "graph g0: capture on compute".
  // What the host waits for: "compute: synchronize", "host: synchronize e0",
  // "host: query e0", "compute: pageable 64" (before that copy).
  virtual const std::vector<std::string>& log() const = 0;
  // Adds a line, as a kernel of a test does; recorded while capturing.
  virtual void Log(std::string line) = 0;
  // What Allocate gave and was not freed yet; pinned memory does not count.
  virtual int64_t allocated_bytes() const = 0;
  virtual int live_graphs() const = 0;
  // From now on all waits of the host end with this error, as after a kernel's
  // illegal access.
  virtual void Break(const absl::Status& status) = 0;
  // Likewise, but questions are answered: as after a peer's failure, when the
  // device itself goes on.
  virtual void GiveUpWaits(const absl::Status& status) = 0;

  // Enqueues `work` on a stream of a fake device, as a kernel's launch does;
  // "compute: <what>". Recorded while capturing.
  static absl::Status EnqueueWork(Stream& stream, absl::string_view what,
                                  std::function<void()> work);
  // Moves the device's clock, which its timers read, when the stream comes to
  // it; copies and fills move it by a microsecond per megabyte.
  virtual absl::Status Spend(Stream& stream, double microseconds) = 0;
  // native() of its streams is the Stream itself.
  //
  // The calling thread's current device.
  static int CurrentOrdinal();
};
std::unique_ptr<FakeDevice> MakeFakeDevice(const FakeDeviceOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_FAKE_DEVICE_H_
