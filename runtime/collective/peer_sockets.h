// A TCP connection to each other rank, each end of which has proven that it
// knows the run's token. Gloo's own listeners take whoever comes first, and a
// stranger who then says nothing would keep the run from starting.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_PEER_SOCKETS_H_
#define HALFTONE_RUNTIME_COLLECTIVE_PEER_SOCKETS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/meeting.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

// By rank; this rank's own is not open. A rank listens on its own address,
// dials the ranks below and is dialled by those above. Strangers and those who
// say nothing are dropped, the sooner the more of them come; who has shown that
// it knows the token stays, and a rank that was dropped comes again. At
// `deadline`, an error (kCommunication) that names the ranks that are not
// connected and tells the store; sooner if the run has failed meanwhile.
absl::StatusOr<std::vector<Socket>> ConnectPeers(Meeting& meeting, int rank,
                                                 int world_size,
                                                 MonotonicTime deadline);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_PEER_SOCKETS_H_
