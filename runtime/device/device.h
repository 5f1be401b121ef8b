// A device: memory, streams, events. cpu | cuda | fake. Enqueued work runs in
// stream order; the host does not wait unless it says so.
#ifndef HALFTONE_RUNTIME_DEVICE_DEVICE_H_
#define HALFTONE_RUNTIME_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Every arena and every slice in it starts at a multiple of this.
inline constexpr int64_t kAlignment = 256;

// The least multiple of it that is not below `bytes`.
constexpr int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A block of memory; freed with the object.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* data() const = 0;
  virtual int64_t bytes() const = 0;
};

class Event {
 public:
  virtual ~Event() = default;
  // Blocks the host until the work recorded before the event is done.
  virtual absl::Status Synchronize() = 0;
  // Whether that work is done.
  virtual absl::StatusOr<bool> Query() = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;
  virtual absl::Status Record(Event& event) = 0;
  // Later work on this stream waits for the event.
  virtual absl::Status Wait(Event& event) = 0;
  // `from` and `to` may be host (pinned) or device memory.
  virtual absl::Status Copy(void* to, const void* from, int64_t bytes) = 0;
  virtual absl::Status Fill(void* to, uint8_t value, int64_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;
  // The driver's handle (cudaStream_t); null on the CPU.
  virtual void* native() { return nullptr; }
  // Compute threads that a host kernel on this stream may use.
  virtual int threads() const { return 1; }
};

// Measures what a stream does between two points.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual absl::Status Start(Stream& stream) = 0;
  virtual absl::Status Stop(Stream& stream) = 0;
  // Waits for the stop.
  virtual absl::StatusOr<double> Microseconds() = 0;
  // From the start of `earlier`, another timer of this device, to this one's:
  // after Microseconds().
  virtual absl::StatusOr<double> MicrosecondsSince(Timer& earlier) = 0;
};

// A sequence of enqueued work that can be replayed (a CUDA graph).
class Graph {
 public:
  virtual ~Graph() = default;
  virtual absl::Status Launch(Stream& stream) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual absl::string_view kind() const = 0;  // "cpu", "cuda", "fake"
  virtual int ordinal() const = 0;
  virtual std::string Description() const = 0;
  // The target whose kernels run here: "cpu", "sm_90".
  virtual std::string target() const = 0;
  // Whether work is done later than the call that enqueues it. If not, the
  // device's memory is the host's too.
  virtual bool asynchronous() const { return false; }
  // Makes this the calling thread's device. A thread that drives several says
  // so before it enqueues, makes or frees anything on one of them.
  virtual absl::Status Use() { return absl::OkStatus(); }

  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) = 0;
  // Host memory that the device copies from and to without staging.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(
      int64_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(
      absl::string_view name) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;
  // By default by the host's clock, waiting for the stream at both points.
  virtual absl::StatusOr<std::unique_ptr<Timer>> CreateTimer();
  // Captures what `enqueue` puts on `stream` (and on streams that join it by
  // events). Null where the device has no graphs (cpu): run eagerly instead.
  virtual absl::StatusOr<std::unique_ptr<Graph>> Capture(
      Stream& stream, const std::function<absl::Status()>& enqueue) = 0;
  // Bytes that a plan may take.
  virtual absl::StatusOr<int64_t> FreeBytes() = 0;
};

// `threads`: compute threads of host kernels.
std::unique_ptr<Device> MakeCpuDevice(int ordinal, int threads);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_DEVICE_H_
