// Streams, events and captured graphs of a CUDA device.
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_STREAM_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_STREAM_H_

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// Looks after a host's wait that takes long: is called with a function that
// says whether the device is done, and returns when it does, or why not.
using WaitGuard = std::function<absl::Status(
    const std::function<absl::StatusOr<bool>()>& done)>;

// How the host waits for a device: awake at first, then asleep in short steps,
// and after a third of a second under the guard's eyes, if there is one: a
// collective whose peer is gone never ends by itself.
class CudaWaits {
 public:
  // Returns when the guard before it looks after no wait any more, so that
  // what that one refers to may end.
  void SetGuard(WaitGuard guard);
  // `done` never blocks.
  absl::Status Await(const std::function<absl::StatusOr<bool>()>& done);

 private:
  std::mutex mutex_;
  std::condition_variable unguarded_;
  WaitGuard guard_;
  int guarded_ = 0;  // waits that a guard looks after
};

// Between the priorities of a device (numerically, `greatest` <= `least`): a
// collective comes before the compute that could delay all ranks.
int StreamPriority(absl::string_view name, int least, int greatest);

// `waits` outlives them. Errors name the stream.
absl::StatusOr<std::unique_ptr<Stream>> MakeCudaStream(absl::string_view name,
                                                       CudaWaits* waits);
absl::StatusOr<std::unique_ptr<Event>> MakeCudaEvent(CudaWaits* waits);
absl::StatusOr<std::unique_ptr<Timer>> MakeCudaTimer(CudaWaits* waits);
absl::StatusOr<std::unique_ptr<Graph>> CaptureCudaGraph(
    Stream& stream, const std::function<absl::Status()>& enqueue);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_STREAM_H_
