#include "runtime/rendezvous/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/hmac.h"
#include "runtime/rendezvous/store_message.h"
#include "runtime/rendezvous/store_state.h"

namespace halftone {
namespace runtime {
namespace {

// A connection that has not shown the token within this time is cut off, or
// when so many came later that have not either: whoever holds connections and
// says nothing keeps no rank out.
constexpr absl::Duration kHelloTime = absl::Seconds(10);
constexpr int kMaxStrangers = 512;
// Taken at once, before those who are connected are heard again.
constexpr int kAcceptedAtOnce = 64;
constexpr int64_t kMaxOutput = int64_t{8} << 20;  // unread replies

struct Connection {
  Socket socket;
  StoreClientState client;
  MonotonicTime opened;
  std::string input;
  std::string output;
  bool broken = false;
};

class StoreServerImpl : public StoreServer {
 public:
  StoreServerImpl(const StoreServerOptions& options, Socket listener)
      : options_(options),
        listener_(std::move(listener)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        state_(options) {
    address_ = listener_.local();
    if (!options.host.empty()) address_.host = options.host;
    thread_ = std::thread([this] { Serve(); });
  }
  ~StoreServerImpl() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    Wake();
    thread_.join();
  }

  HostPort address() const override { return address_; }
  std::optional<RunFailure> failure() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_.failure();
  }
  void Fail(const RunFailure& failure) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      state_.Fail(failure);
    }
    Wake();
  }
  std::vector<int> members() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_.members();
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    Retried([&] { return write(wake_.fd(), &one, sizeof(one)); });
  }
  void Serve();
  bool Tick();  // false: stop
  std::vector<pollfd> Interests() const;
  MonotonicTime NextDeadline() const;
  void Accept();
  bool AcceptOne();
  void DropStranger();
  void Read(Connection& connection);
  void HandleInput(Connection& connection);
  void Write(Connection& connection);
  void Sweep();

  const StoreServerOptions options_;
  Socket listener_;
  Socket wake_;
  HostPort address_;
  mutable std::mutex mutex_;  // guards what follows
  StoreState state_;
  std::vector<std::unique_ptr<Connection>> connections_;
  bool stopping_ = false;
  std::thread thread_;
};

std::vector<pollfd> StoreServerImpl::Interests() const {
  std::vector<pollfd> fds = {{wake_.fd(), POLLIN, 0},
                             {listener_.fd(), POLLIN, 0}};
  for (const auto& connection : connections_) {
    const short events = connection->output.empty() ? POLLIN : POLLIN | POLLOUT;
    fds.push_back({connection->socket.fd(), events, 0});
  }
  return fds;
}

MonotonicTime StoreServerImpl::NextDeadline() const {
  MonotonicTime next = MonotonicTime::InfiniteFuture();
  for (const auto& connection : connections_) {
    next = std::min(next, connection->client.admitted
                              ? connection->client.deadline
                              : connection->opened + kHelloTime);
  }
  return next;
}

void StoreServerImpl::Serve() {
  while (Tick()) {
  }
  std::lock_guard<std::mutex> lock(mutex_);
  Sweep();  // who waits for a failure that has just come hears of it first
  for (auto& connection : connections_) {
    if (connection->client.deadline != MonotonicTime::InfiniteFuture()) {
      connection->output += ClosedReply();
      Write(*connection);
    }
  }
  connections_.clear();
}

bool StoreServerImpl::Tick() {
  std::vector<pollfd> fds;
  int ms = -1;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return false;
    fds = Interests();
    ms = PollTimeout(NextDeadline());
  }
  poll(fds.data(), fds.size(), ms);

  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t count;
  if (fds[0].revents != 0) {
    Retried([&] { return read(wake_.fd(), &count, sizeof(count)); });
  }
  // Only this thread changes the list, so it still matches `fds`.
  for (size_t i = 2; i < fds.size(); ++i) {
    Connection& connection = *connections_[i - 2];
    if (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) Read(connection);
  }
  if (fds[1].revents != 0) Accept();
  Sweep();
  return !stopping_;
}

void StoreServerImpl::Accept() {
  for (int i = 0; i < kAcceptedAtOnce && AcceptOne(); ++i) {
  }
}

// Ends the oldest connection that has not shown the token, if there are many.
void StoreServerImpl::DropStranger() {
  const auto is_stranger = [](const std::unique_ptr<Connection>& connection) {
    return !connection->client.admitted && !connection->broken;
  };
  const auto oldest =
      std::find_if(connections_.begin(), connections_.end(), is_stranger);
  if (oldest != connections_.end()) (*oldest)->broken = true;
}

bool StoreServerImpl::AcceptOne() {
  const int fd =
      accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    // No more files: those of strangers are the ones to do without.
    if (errno == EMFILE || errno == ENFILE) DropStranger();
    return false;
  }
  auto connection = absl::make_unique<Connection>();
  connection->socket = Socket(fd);
  connection->opened = MonotonicTime::Now();
  if (std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& other) {
                      return !other->client.admitted && !other->broken;
                    }) >= kMaxStrangers) {
    DropStranger();
  }
  connection->client.server_nonce = RandomBytes(kNonceBytes);
  connection->output =
      absl::StrCat(kStoreMagic, connection->client.server_nonce);
  Write(*connection);
  connections_.push_back(std::move(connection));
  return true;
}

void StoreServerImpl::Read(Connection& connection) {
  char buffer[16384];
  while (!connection.broken) {
    const ssize_t n =
        recv(connection.socket.fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      connection.broken = true;
      return;
    }
    connection.input.append(buffer, n);
    HandleInput(connection);
  }
}

void StoreServerImpl::HandleInput(Connection& connection) {
  std::string& input = connection.input;
  while (input.size() >= 4 && !connection.broken) {
    const int64_t length = FrameLength(input);
    if (length > (connection.client.admitted ? kMaxFrame : kMaxHelloFrame)) {
      connection.broken = true;
      return;
    }
    if (static_cast<int64_t>(input.size()) < 4 + length) return;
    const bool was_admitted = connection.client.admitted;
    std::optional<std::string> reply = state_.Handle(
        connection.client, absl::string_view(input).substr(4, length));
    input.erase(0, 4 + length);
    if (!reply.has_value()) {
      connection.broken = true;
      return;
    }
    if (!was_admitted && connection.client.admitted) {
      state_.Reached(connection.socket.local().host);
    }
    connection.output += *reply;
    Write(connection);
    // One guess a connection.
    if (!connection.client.admitted) connection.broken = true;
    if (static_cast<int64_t>(connection.output.size()) > kMaxOutput) {
      connection.broken = true;
    }
  }
}

void StoreServerImpl::Write(Connection& connection) {
  while (!connection.output.empty()) {
    const ssize_t n =
        send(connection.socket.fd(), connection.output.data(),
             connection.output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (errno != EAGAIN) connection.broken = true;
      return;
    }
    connection.output.erase(0, n);
  }
}

// Answers those whose wait is over and forgets those that are gone.
void StoreServerImpl::Sweep() {
  const MonotonicTime now = MonotonicTime::Now();
  for (auto& connection : connections_) {
    if (connection->broken) state_.Ended(connection->client);
  }
  for (auto& connection : connections_) {
    if (!connection->client.admitted &&
        now >= connection->opened + kHelloTime) {
      connection->broken = true;
    }
    if (connection->broken) continue;
    connection->output += state_.Poll(connection->client, now).value_or("");
    Write(*connection);
  }
  // One that Write found broken stays until it is seen to have ended above.
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(),
                                    [this](const auto& connection) {
                                      if (connection->broken) {
                                        state_.Ended(connection->client);
                                      }
                                      return connection->broken;
                                    }),
                     connections_.end());
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(
    const StoreServerOptions& options) {
  const absl::Status no_secret = UsageError(
      "ranks that meet at ", options.host.empty() ? "*" : options.host,
      " must share a secret: HALFTONE_TOKEN or HALFTONE_TOKEN_FILE");
  if (options.token.empty() && !IsLoopback(options.host)) return no_secret;
  absl::StatusOr<Socket> listening = Listen(options.host, options.port);
  if (absl::IsAlreadyExists(listening.status())) {
    return CommunicationError(listening.status().message(), " ",
                              options.port_remedy);
  }
  HT_ASSIGN_OR_RETURN(Socket listener, std::move(listening));
  // By the address, too, whatever the name promises.
  if (options.token.empty() && !IsLoopback(listener.local().host)) {
    return no_secret;
  }
  const int flags = fcntl(listener.fd(), F_GETFL);
  fcntl(listener.fd(), F_SETFL, flags | O_NONBLOCK);
  return {absl::make_unique<StoreServerImpl>(options, std::move(listener))};
}

}  // namespace runtime
}  // namespace halftone
