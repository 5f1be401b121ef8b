// Gloo's connections between all pairs of ranks, with waits that know whom
// they wait for, end at a deadline and can be interrupted.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_GLOO_MESH_H_
#define HALFTONE_RUNTIME_COLLECTIVE_GLOO_MESH_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gloo/context.h"
#include "gloo/transport/unbound_buffer.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/transfers.h"
#include "runtime/rendezvous/meeting.h"

namespace halftone {
namespace runtime {

using GlooBuffer = gloo::transport::UnboundBuffer;

// Send and Receive only start a transfer; buffers must live until it is waited
// for, or until an error. Between two ranks, transfers with the same tag
// arrive in order. Errors are exceptions (Gloo's, or TransferInterrupted): the
// communicator turns them into a Status.
class GlooMesh {
 public:
  // Connects to all ranks of `meeting`, each of which proves that it knows the
  // run's token. Errors are kCommunication.
  static absl::StatusOr<std::unique_ptr<GlooMesh>> Connect(
      Meeting& meeting, int rank, int world_size, absl::Duration timeout);
  std::unique_ptr<GlooBuffer> MakeBuffer(void* data, int64_t bytes) {
    return context_->createUnboundBuffer(data, bytes);
  }
  void Send(GlooBuffer& buffer, int peer, uint64_t tag, int64_t offset,
            int64_t bytes);
  void Receive(GlooBuffer& buffer, int peer, uint64_t tag, int64_t offset,
               int64_t bytes);
  // One completed transfer of `buffer`; `peer` is for errors.
  void AwaitReceived(GlooBuffer& buffer, int peer, MonotonicTime deadline);
  void AwaitSent(GlooBuffer& buffer, MonotonicTime deadline);

  // Closes all connections; what was sent still arrives. No transfer goes on
  // after it, so that buffers may go.
  void Close();
  // Ends the wait under way and all later ones; from any thread.
  void Interrupt();
  // Whom the last transfer or wait was for; -1 if for nobody in particular.
  int awaited_peer() const { return awaited_peer_; }

 private:
  explicit GlooMesh(std::shared_ptr<gloo::Context> context)
      : context_(std::move(context)) {}

  class Waiting;

  std::shared_ptr<gloo::Context> context_;
  int awaited_peer_ = -1;
  std::mutex mutex_;  // guards what follows
  bool interrupted_ = false;
  GlooBuffer* waiting_ = nullptr;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_GLOO_MESH_H_
