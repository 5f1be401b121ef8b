// Finds ranks that run something else than the others.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_CHECK_ALL_EQUAL_H_
#define HALFTONE_RUNTIME_COLLECTIVE_CHECK_ALL_EQUAL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/collective/communicator.h"

namespace halftone {
namespace runtime {

// Compares `bytes` (by hash) among all ranks; a collective. If they are not all
// equal, all ranks get the same error (kCommunication): the ranks that differ
// from the most frequent value, with the hashes. `what` is "compiled model".
absl::Status CheckAllEqual(Communicator& communicator, absl::string_view what,
                           absl::string_view bytes);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_CHECK_ALL_EQUAL_H_
