// A device for tests: host memory, and a log of everything that was enqueued.
//
// Capture follows CUDA's rules: what is enqueued is recorded and not done, a
// stream joins by waiting for an event recorded in the capture, every stream
// that joined must be waited for by the captured one at the end, and the host
// must not wait for or ask about captured work.
#ifndef HALFTONE_RUNTIME_DEVICE_FAKE_DEVICE_H_
#define HALFTONE_RUNTIME_DEVICE_FAKE_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

struct FakeDeviceOptions {
  int64_t memory_bytes = int64_t{1} << 30;  // Allocate fails beyond
  bool has_graphs = true;  // Capture records and Launch replays the log
};

class FakeDevice : public Device {
 public:
  // "compute: copy 64", "compute: record e0", "graph g0: launch", ...
  // Lines of a launched graph follow its launch, each after "graph g0: ".
  // Nothing is logged while capturing but "graph g0: capture on compute".
  virtual const std::vector<std::string>& log() const = 0;
  // Adds a line, as a kernel of a test does; recorded while capturing.
  virtual void Log(std::string line) = 0;
  // What Allocate gave and was not freed yet; pinned memory does not count.
  virtual int64_t allocated_bytes() const = 0;
};
std::unique_ptr<FakeDevice> MakeFakeDevice(const FakeDeviceOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_FAKE_DEVICE_H_
