// Collectives on a device's memory by way of the host, for ranks that NCCL does
// not connect: several on one GPU.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_STAGED_COMMUNICATOR_H_
#define HALFTONE_RUNTIME_COLLECTIVE_STAGED_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// `host` works on host memory; its results are this one's, bit for bit. Every
// collective waits for the stream, so that none can be captured. `device`
// outlives it and is the calling thread's in every collective.
absl::StatusOr<std::unique_ptr<Communicator>> MakeStagedCommunicator(
    std::unique_ptr<Communicator> host, Device* device);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_STAGED_COMMUNICATOR_H_
