// TCP sockets with time limits.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_SOCKET_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_SOCKET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"

namespace halftone {
namespace runtime {

struct HostPort {
  std::string host;
  int port = 0;
};
// "host:port", "1.2.3.4:29500", "[::1]:29500". `what` names the source of the
// text in an error (kUsage).
absl::StatusOr<HostPort> ParseHostPort(absl::string_view what,
                                       absl::string_view text);
// "host:port", IPv6 addresses in brackets.
std::string ToString(const HostPort& address);
// 127.x.y.z, ::1 and localhost, however spelled; a name that only resolves to
// one of them is not.
bool IsLoopback(absl::string_view host);

// An open file descriptor; closed with the object.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.Release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { Close(); }

  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int Release();
  void Close();

  // All of `bytes`, or an error at `deadline`. Never raises SIGPIPE.
  absl::Status Send(absl::string_view bytes, MonotonicTime deadline);
  // Exactly `bytes` bytes. Out-of-range if the peer closed before the first.
  absl::StatusOr<std::string> Receive(int64_t bytes, MonotonicTime deadline);

  // Numeric addresses of the two ends; empty if not connected.
  HostPort local() const;
  HostPort peer() const;

 private:
  absl::Status WaitFor(short events, MonotonicTime deadline);

  int fd_ = -1;
};

// Where a server that peers elsewhere reach as `host` is to listen: that
// address alone, also where it is the loopback. Empty, which is all addresses,
// for a name that here means none of this machine's addresses (a service's), or
// for the machine's own name where /etc/hosts has a stand-in for it
// (127.0.1.1).
std::string ListenHost(const std::string& host);

// Listens on `host` (a name or address of this machine; empty: on all
// addresses) and `port` (0: any free one). A port in use is kAlreadyExists and
// ends with "choose another port", any other error is kCommunication.
absl::StatusOr<Socket> Listen(absl::string_view host, int port);

// Connects, and tries again until `deadline` while nobody listens there.
absl::StatusOr<Socket> ConnectTo(const HostPort& address,
                                 MonotonicTime deadline);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_SOCKET_H_
