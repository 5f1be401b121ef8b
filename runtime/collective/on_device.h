// For the conformance tests, whose buffers are the host's.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_ON_DEVICE_H_
#define HALFTONE_RUNTIME_COLLECTIVE_ON_DEVICE_H_

#include <memory>

#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// A communicator that copies buffers to the device, has `inner` work on them
// there, on a stream of the device, and copies them back.
std::unique_ptr<Communicator> MakeOnDevice(std::unique_ptr<Device> device,
                                           std::unique_ptr<Communicator> inner);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_ON_DEVICE_H_
