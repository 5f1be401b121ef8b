#include "runtime/collective/gloo_mesh.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/system/system_error.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/gloo_context.h"
#include "runtime/collective/peer_sockets.h"

namespace halftone {
namespace runtime {
namespace {

// What remains until `deadline`, at least a moment: Gloo takes 0 for "no
// limit" in places.
std::chrono::milliseconds Remaining(MonotonicTime deadline) {
  const absl::Duration left = deadline - MonotonicTime::Now();
  return std::chrono::milliseconds(
      std::max<int64_t>(absl::ToInt64Milliseconds(left), 1));
}

// Gloo writes to sockets whose other end may be gone.
void IgnoreBrokenPipes() {
  struct sigaction now;
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

// Marks the buffer that is waited for, for Interrupt.
class GlooMesh::Waiting {
 public:
  Waiting(GlooMesh& mesh, GlooBuffer& buffer) : mesh_(mesh) {
    std::lock_guard<std::mutex> lock(mesh_.mutex_);
    if (mesh_.interrupted_) throw TransferInterrupted();
    mesh_.waiting_ = &buffer;
  }
  ~Waiting() {
    std::lock_guard<std::mutex> lock(mesh_.mutex_);
    mesh_.waiting_ = nullptr;
  }

 private:
  GlooMesh& mesh_;
};

absl::StatusOr<std::unique_ptr<GlooMesh>> GlooMesh::Connect(
    Meeting& meeting, int rank, int world_size, absl::Duration timeout) {
  IgnoreBrokenPipes();
  const MonotonicTime deadline = MonotonicTime::Now() + timeout;
  HT_ASSIGN_OR_RETURN(std::vector<Socket> peers,
                      ConnectPeers(meeting, rank, world_size, deadline));
  try {
    return absl::WrapUnique(new GlooMesh(MakeGlooContext(
        meeting.own_address(), rank, std::move(peers), Remaining(deadline))));
  } catch (const std::exception& error) {
    const ExitCode code = IsOutOfMemory(error) ? ExitCode::kOutOfMemory
                                               : ExitCode::kCommunication;
    return MakeError(code,
                     absl::StrCat("rank ", rank, " of ", world_size,
                                  " cannot use its connections from ",
                                  meeting.own_address(), ": ", error.what()));
  }
}

void GlooMesh::Close() {
  // Not closeConnections(), which throws away what is on its way.
  for (int peer = 0; peer < context_->size; ++peer) {
    context_->getPair(peer).reset();
  }
}

void GlooMesh::Send(GlooBuffer& buffer, int peer, uint64_t tag, int64_t offset,
                    int64_t bytes) {
  awaited_peer_ = peer;
  buffer.send(peer, tag, offset, bytes);
}

void GlooMesh::Receive(GlooBuffer& buffer, int peer, uint64_t tag,
                       int64_t offset, int64_t bytes) {
  awaited_peer_ = peer;
  buffer.recv(peer, tag, offset, bytes);
}

void GlooMesh::AwaitReceived(GlooBuffer& buffer, int peer,
                             MonotonicTime deadline) {
  awaited_peer_ = peer;
  Waiting waiting(*this, buffer);
  if (!buffer.waitRecv(Remaining(deadline))) throw TransferInterrupted();
}

void GlooMesh::AwaitSent(GlooBuffer& buffer, MonotonicTime deadline) {
  awaited_peer_ = -1;
  Waiting waiting(*this, buffer);
  if (!buffer.waitSend(Remaining(deadline))) throw TransferInterrupted();
}

void GlooMesh::Interrupt() {
  std::lock_guard<std::mutex> lock(mutex_);
  interrupted_ = true;
  if (waiting_ == nullptr) return;
  waiting_->abortWaitRecv();
  waiting_->abortWaitSend();
}

}  // namespace runtime
}  // namespace halftone
