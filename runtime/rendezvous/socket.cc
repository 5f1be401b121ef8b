#include "runtime/rendezvous/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"
#include "graph/base/time/monotonic_time.h"

namespace halftone {
namespace runtime {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(50);
constexpr absl::string_view kLocalhost = "localhost";

// Of the canonical class that tells whether to try again.
absl::Status Failed(int error, absl::string_view what) {
  return error == ENOMEM ? SystemError(ExitCode::kOutOfMemory, error, what)
                         : absl::ErrnoToStatus(error, what);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const HostPort& address, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = absl::StrCat(address.port);
  // The loopback has this name on machines without /etc/hosts too (RFC 6761).
  const std::string host = absl::EqualsIgnoreCase(address.host, kLocalhost)
                               ? "127.0.0.1"
                               : address.host;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                port.c_str(), &hints, &list);
  if (error != 0) {
    const std::string text = absl::StrCat("cannot resolve host '", address.host,
                                          "': ", gai_strerror(error));
    return error == EAI_MEMORY ? OutOfMemoryError(text)
                               : CommunicationError(text);
  }
  return Addresses(list);
}

HostPort ToHostPort(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  HostPort result;
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host,
                  sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return result;
  }
  result.host = host;
  (void)absl::SimpleAtoi(port, &result.port);
  return result;
}

// Not open, with errno set, on failure.
Socket ListenAt(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) return socket;
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.fd(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket.fd(), SOMAXCONN) != 0) {
    const int error = errno;
    socket.Close();
    errno = error;
  }
  return socket;
}

// One attempt; the error is the system's.
absl::StatusOr<Socket> ConnectOnce(const addrinfo& address,
                                   MonotonicTime deadline) {
  Socket socket(::socket(address.ai_family,
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return Failed(errno, "socket");
  // A call that a signal cut short goes on: the next one says how far it is.
  const int connected = Retried([&] {
    return connect(socket.fd(), address.ai_addr, address.ai_addrlen);
  });
  if (connected != 0 && errno != EISCONN) {
    if (errno != EINPROGRESS && errno != EALREADY) {
      return Failed(errno, "connect");
    }
    pollfd wait = {socket.fd(), POLLOUT, 0};
    Retried([&] { return poll(&wait, 1, PollTimeout(deadline)); });
    int error = ETIMEDOUT;
    socklen_t length = sizeof(error);
    if (wait.revents != 0) {
      getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) return Failed(error, "connect");
  }
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

absl::Status ClosedByPeer() {
  return absl::OutOfRangeError("connection closed by the other side");
}

// The first address of a list; empty: there is none.
std::string NumericHost(const absl::StatusOr<Addresses>& list) {
  if (!list.ok() || *list == nullptr) return "";
  sockaddr_storage address = {};
  std::memcpy(&address, (*list)->ai_addr, (*list)->ai_addrlen);
  return ToHostPort(address, (*list)->ai_addrlen).host;
}

bool IsLoopbackAddress(absl::string_view numeric) {
  return absl::StartsWith(numeric, "127.") || numeric == "::1" ||
         absl::StartsWith(numeric, "::ffff:127.");
}

// The names by which the rest of the world knows this machine.
bool IsOwnName(absl::string_view name) {
  char own[NI_MAXHOST] = {};
  if (gethostname(own, sizeof(own) - 1) != 0) return false;
  const absl::string_view host = own;
  return absl::EqualsIgnoreCase(name.substr(0, name.find('.')),
                                host.substr(0, host.find('.')));
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(absl::string_view what,
                                       absl::string_view text) {
  const size_t colon = text.rfind(':');
  HostPort address;
  absl::string_view host = text.substr(0, std::min(colon, text.size()));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  address.host = std::string(host);
  if (colon == absl::string_view::npos || host.empty() ||
      !absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 1 || address.port > 65535) {
    return UsageError(what, ": expected HOST:PORT with a port of 1 to 65535, ",
                      "found '", text, "'");
  }
  return address;
}

std::string ToString(const HostPort& address) {
  const bool v6 = absl::StrContains(address.host, ':');
  return absl::StrCat(v6 ? "[" : "", address.host, v6 ? "]:" : ":",
                      address.port);
}

bool IsLoopback(absl::string_view host) {
  if (absl::EqualsIgnoreCase(host, kLocalhost)) return true;
  if (host.empty()) return false;  // all addresses
  // Not by its letters: 127.example.com is a name like any other.
  return IsLoopbackAddress(
      NumericHost(Resolve({std::string(host), 0}, AI_NUMERICHOST)));
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

int Socket::Release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void Socket::Close() {
  if (fd_ >= 0) close(Release());
}

absl::Status Socket::WaitFor(short events, MonotonicTime deadline) {
  while (true) {
    const int ms = PollTimeout(deadline);
    if (ms == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer from ", ToString(peer())));
    }
    pollfd wait = {fd_, events, 0};
    const int ready = poll(&wait, 1, ms);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Failed(errno, "poll");
  }
}

absl::Status Socket::Send(absl::string_view bytes, MonotonicTime deadline) {
  while (!bytes.empty()) {
    const ssize_t sent =
        send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(sent);
    } else if (errno == EAGAIN) {
      HT_RETURN_IF_ERROR(WaitFor(POLLOUT, deadline));
    } else if (errno == EPIPE) {
      return ClosedByPeer();
    } else if (errno != EINTR) {
      return Failed(errno, "send");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Socket::Receive(int64_t bytes,
                                            MonotonicTime deadline) {
  std::string data(bytes, '\0');
  int64_t got = 0;
  while (got < bytes) {
    const ssize_t n = recv(fd_, &data[got], bytes - got, MSG_DONTWAIT);
    if (n > 0) {
      got += n;
    } else if (n == 0) {
      return ClosedByPeer();
    } else if (errno == EAGAIN) {
      HT_RETURN_IF_ERROR(WaitFor(POLLIN, deadline));
    } else if (errno != EINTR) {
      return Failed(errno, "receive");
    }
  }
  return data;
}

HostPort Socket::local() const {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return {};
  }
  return ToHostPort(address, length);
}

HostPort Socket::peer() const {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return {};
  }
  return ToHostPort(address, length);
}

std::string ListenHost(const std::string& host) {
  absl::StatusOr<Addresses> list = Resolve({host, 0}, AI_NUMERICHOST);
  if (absl::EqualsIgnoreCase(host, kLocalhost) || list.ok()) return host;
  list = Resolve({host, 0}, 0);
  if (!list.ok()) return "";
  std::string loopback;
  for (const addrinfo* at = list->get(); at != nullptr; at = at->ai_next) {
    const Socket socket = ListenAt(*at);
    const std::string address = socket.open() ? socket.local().host : "";
    if (address.empty()) continue;
    if (!IsLoopbackAddress(address)) return address;
    if (loopback.empty()) loopback = address;
  }
  // Debian's /etc/hosts has 127.0.1.1 for the machine's own name.
  const bool stands_for_network =
      loopback != "127.0.0.1" && loopback != "::1" && IsOwnName(host);
  return stands_for_network ? "" : loopback;
}

absl::StatusOr<Socket> Listen(absl::string_view host, int port) {
  const HostPort address = {std::string(host), port};
  HT_ASSIGN_OR_RETURN(Addresses list, Resolve(address, AI_PASSIVE));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Socket socket = ListenAt(*at);
    if (socket.open()) return socket;
    error = errno;
  }
  const std::string where = ToString({host.empty() ? "*" : address.host, port});
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat(
        "cannot listen on ", where, ": port ", port,
        " is in use by another run or program; end it, or choose another "
        "port"));
  }
  return SystemError(
      ExitCode::kCommunication, error, absl::StrCat("cannot listen on ", where),
      error == EADDRNOTAVAIL ? "is it an address of this machine?" : "");
}

absl::StatusOr<Socket> ConnectTo(const HostPort& address,
                                 MonotonicTime deadline) {
  const MonotonicTime start = MonotonicTime::Now();
  absl::Status error;
  do {
    // A name may become known only when the peer's machine is up.
    absl::StatusOr<Addresses> list = Resolve(address, 0);
    error = list.status();
    if (list.ok()) {
      for (const addrinfo* at = list->get(); at != nullptr; at = at->ai_next) {
        absl::StatusOr<Socket> socket = ConnectOnce(*at, deadline);
        if (socket.ok()) return socket;
        error = socket.status();
      }
    }
    if (ExitCodeOf(error) == ExitCode::kOutOfMemory) return error;
    absl::SleepFor(std::min(kRetry, deadline - MonotonicTime::Now()));
  } while (MonotonicTime::Now() < deadline);
  return CommunicationError(
      "no connection to ", ToString(address), " within ",
      absl::FormatDuration(
          absl::Trunc(MonotonicTime::Now() - start, absl::Milliseconds(1))),
      " (", error.message(), "); is rank 0 running, and is this its address?");
}

}  // namespace runtime
}  // namespace halftone
