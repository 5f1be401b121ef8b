// Blocks of host memory, shared by the devices whose memory is the host's.
#ifndef HALFTONE_RUNTIME_DEVICE_HOST_MEMORY_H_
#define HALFTONE_RUNTIME_DEVICE_HOST_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// Zeroed memory that starts at a multiple of kAlignment, also for 0 bytes.
// Large blocks come from the system page by page and go back to it when freed;
// they use huge pages where the system has them. An error (kOutOfMemory) says
// how much was asked for and how much is free.
absl::StatusOr<std::unique_ptr<Memory>> AllocateHostMemory(int64_t bytes);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_HOST_MEMORY_H_
