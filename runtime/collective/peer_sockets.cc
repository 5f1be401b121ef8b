#include "runtime/collective/peer_sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/hmac.h"

namespace halftone {
namespace runtime {
namespace {

// The dialling rank says who it is, whom it means, and a nonce, with a proof
// that it knows the token; the other answers with its nonce and proof; the
// first proves that it is no recording; the other says that it holds. All of
// fixed length, so that nothing behind is read.
constexpr absl::string_view kMagic = "HTPEER02";
constexpr size_t kRankDigits = 8;
constexpr size_t kNonce = 16;
constexpr size_t kProof = 32;  // HMAC-SHA-256
constexpr size_t kWords = 8 + 2 * kRankDigits + kNonce;
constexpr size_t kHello = kWords + kProof;
constexpr char kHolds = '+';

// Between looks at whether the run has failed.
constexpr absl::Duration kFailureLook = absl::Milliseconds(250);
// For one attempt to dial; the other rank may still be dialling itself.
constexpr absl::Duration kDial = absl::Seconds(2);
constexpr absl::Duration kRetry = absl::Milliseconds(20);
// For a caller's hello, and then for its proof.
constexpr absl::Duration kPatience = absl::Seconds(5);
// Callers without a hello; of more, the first to come is the first to go. A
// rank's hello comes with its connection, and whoever has said it stays: only
// who knows the token can say one.
constexpr size_t kMaxStrangers = 256;
// Taken at once, before those who are connected are heard again.
constexpr int kAcceptedAtOnce = 128;

std::string AddressKey(int rank) { return absl::StrCat("peer/", rank); }

// Of one end, over all that both have said.
std::string Proof(absl::string_view token, absl::string_view end,
                  absl::string_view hello, absl::string_view nonce) {
  return HmacSha256(token, absl::StrCat("peer ", end, " ", hello, nonce));
}

std::string Hello(absl::string_view token, int from, int to) {
  const std::string words = absl::StrCat(
      kMagic, absl::StrFormat("%08d%08d", from, to), RandomBytes(kNonce));
  return words + Proof(token, "calling", words, "");
}

// Somebody who has dialled this rank.
struct Caller {
  bool is_stranger() const { return hello.empty(); }

  Socket socket;
  MonotonicTime since;  // it came, or said its hello
  int rank = -1;        // that it is
  std::string hello;
  std::string nonce;
  std::string input;
};

class PeerSockets {
 public:
  PeerSockets(Meeting& meeting, int rank, int world_size,
              MonotonicTime deadline)
      : meeting_(meeting),
        rank_(rank),
        deadline_(deadline),
        sockets_(world_size) {}

  absl::StatusOr<std::vector<Socket>> Connect() {
    HT_RETURN_IF_ERROR(Open());
    for (int peer = 0; peer < rank_; ++peer) {
      HT_RETURN_IF_ERROR(Dial(peer));
    }
    HT_RETURN_IF_ERROR(AwaitCallers());
    return std::move(sockets_);
  }

 private:
  absl::Status Open();
  absl::Status Dial(int peer);
  absl::StatusOr<HostPort> AddressOf(int peer);
  absl::StatusOr<Socket> DialOnce(const HostPort& address, int peer);
  absl::Status AwaitCallers();
  std::vector<int> Missing() const;
  void HearCallers(const std::vector<pollfd>& fds);
  void Accept();
  bool DropStranger();  // false: there is none
  // False: it is done with, as a peer or as a stranger.
  bool Hear(Caller& caller);
  bool Answer(Caller& caller, const std::string& input);
  bool TakeHello(Caller& caller, const std::string& hello);
  // An error if the run has failed or the time is over.
  absl::Status GoOn();

  Meeting& meeting_;
  const int rank_;
  const MonotonicTime deadline_;
  std::vector<Socket> sockets_;
  Socket listener_;
  std::vector<Caller> callers_;  // in the order in which they came
  size_t strangers_ = 0;         // of them
  // What was said once is from then on a recording.
  absl::flat_hash_set<std::string> hellos_;
  absl::Status trouble_;  // the last of our own, for the error at the end
};

absl::Status PeerSockets::Open() {
  HT_ASSIGN_OR_RETURN(listener_, Listen(meeting_.own_address(), 0));
  fcntl(listener_.fd(), F_SETFL, fcntl(listener_.fd(), F_GETFL) | O_NONBLOCK);
  const HostPort address = {meeting_.own_address(), listener_.local().port};
  return meeting_.store().Set(AddressKey(rank_), ToString(address));
}

std::vector<int> PeerSockets::Missing() const {
  std::vector<int> missing;
  for (int peer = 0; peer < static_cast<int>(sockets_.size()); ++peer) {
    if (peer != rank_ && !sockets_[peer].open()) missing.push_back(peer);
  }
  return missing;
}

absl::Status PeerSockets::GoOn() {
  HT_ASSIGN_OR_RETURN(std::optional<std::string> failed,
                      meeting_.store().Get(kFailureKey));
  if (failed) return CommunicationError(RunFailureFromText(*failed).text);
  if (MonotonicTime::Now() < deadline_) return absl::OkStatus();
  RunFailure failure;
  failure.suspects = Missing();
  failure.text = absl::StrCat(
      failure.suspects.size() == 1 ? "rank " : "ranks ",
      absl::StrJoin(failure.suspects, ", "), " did not connect with rank ",
      rank_, " at ", ToString(listener_.local()), " in time",
      trouble_.ok() ? "" : absl::StrCat(": ", trouble_.message()),
      " (wait longer: --connect-timeout SECONDS)");
  (void)meeting_.store().Fail(failure);
  return CommunicationError(failure.text);
}

absl::StatusOr<HostPort> PeerSockets::AddressOf(int peer) {
  while (true) {
    HT_ASSIGN_OR_RETURN(
        WaitResult there,
        meeting_.store().Wait({AddressKey(peer)}, kFailureLook));
    if (there.missing.empty()) {
      return ParseHostPort("a peer's address", there.values[0]);
    }
    HT_RETURN_IF_ERROR(GoOn());
  }
}

absl::Status PeerSockets::Dial(int peer) {
  HT_ASSIGN_OR_RETURN(const HostPort address, AddressOf(peer));
  while (true) {
    absl::StatusOr<Socket> socket = DialOnce(address, peer);
    if (socket.ok()) {
      sockets_[peer] = *std::move(socket);
      return absl::OkStatus();
    }
    trouble_ = socket.status();
    HT_RETURN_IF_ERROR(GoOn());
    absl::SleepFor(kRetry);
  }
}

absl::StatusOr<Socket> PeerSockets::DialOnce(const HostPort& address,
                                             int peer) {
  const MonotonicTime limit = std::min(deadline_, MonotonicTime::Now() + kDial);
  HT_ASSIGN_OR_RETURN(Socket socket, ConnectTo(address, limit));
  const std::string hello = Hello(meeting_.token(), rank_, peer);
  HT_RETURN_IF_ERROR(socket.Send(hello, limit));
  HT_ASSIGN_OR_RETURN(const std::string answer,
                      socket.Receive(kNonce + kProof, limit));
  const std::string nonce = answer.substr(0, kNonce);
  if (!EqualSecrets(answer.substr(kNonce),
                    Proof(meeting_.token(), "dialled", hello, nonce))) {
    return absl::PermissionDeniedError("it does not know the token");
  }
  // From here on the other is a rank that waits for this one: to give up and
  // dial again could come after it has stopped listening.
  HT_RETURN_IF_ERROR(socket.Send(
      Proof(meeting_.token(), "dialling", hello, nonce), deadline_));
  HT_RETURN_IF_ERROR(socket.Receive(1, deadline_).status());
  return socket;
}

absl::Status PeerSockets::AwaitCallers() {
  trouble_ = absl::OkStatus();
  MonotonicTime look = MonotonicTime::Now() + kFailureLook;
  while (!Missing().empty()) {
    std::vector<pollfd> fds = {{listener_.fd(), POLLIN, 0}};
    for (const Caller& caller : callers_) {
      fds.push_back({caller.socket.fd(), POLLIN, 0});
    }
    poll(fds.data(), fds.size(),
         static_cast<int>(absl::ToInt64Milliseconds(kFailureLook)));
    HearCallers(fds);
    if (fds[0].revents != 0) Accept();
    if (MonotonicTime::Now() < look) continue;
    HT_RETURN_IF_ERROR(GoOn());
    look = MonotonicTime::Now() + kFailureLook;
  }
  return absl::OkStatus();
}

// `fds`: the listener's, then the callers'.
void PeerSockets::HearCallers(const std::vector<pollfd>& fds) {
  const MonotonicTime now = MonotonicTime::Now();
  std::vector<Caller> left;
  strangers_ = 0;
  for (size_t i = 0; i < callers_.size(); ++i) {
    const bool stays = fds[i + 1].revents != 0
                           ? Hear(callers_[i])
                           : now < callers_[i].since + kPatience;
    if (!stays) continue;
    strangers_ += callers_[i].is_stranger() ? 1 : 0;
    left.push_back(std::move(callers_[i]));
  }
  callers_ = std::move(left);
}

void PeerSockets::Accept() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    Caller caller;
    caller.socket = Socket(Retried([&] {
      return accept4(listener_.fd(), nullptr, nullptr,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    }));
    if (!caller.socket.open()) {
      if (errno == EAGAIN) return;
      trouble_ = absl::ErrnoToStatus(errno, "cannot take a connection");
      // Out of files: those who hold them without a hello go first.
      if (!DropStranger()) absl::SleepFor(kRetry);
      return;
    }
    caller.since = MonotonicTime::Now();
    // A rank's hello is there by now, or comes in a moment.
    if (!Hear(caller)) continue;
    if (caller.is_stranger() && ++strangers_ > kMaxStrangers) DropStranger();
    callers_.push_back(std::move(caller));
  }
}

bool PeerSockets::DropStranger() {
  const auto first =
      std::find_if(callers_.begin(), callers_.end(),
                   [](const Caller& caller) { return caller.is_stranger(); });
  if (first == callers_.end()) return false;
  callers_.erase(first);
  --strangers_;
  return true;
}

bool PeerSockets::Hear(Caller& caller) {
  while (true) {
    const size_t wanted = caller.is_stranger() ? kHello : kProof;
    char buffer[std::max(kHello, kProof)];
    const ssize_t n = recv(caller.socket.fd(), buffer,
                           wanted - caller.input.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    caller.input.append(buffer, n);
    if (caller.input.size() < wanted) continue;
    std::string heard;
    heard.swap(caller.input);
    if (!Answer(caller, heard)) return false;
  }
}

bool PeerSockets::TakeHello(Caller& caller, const std::string& hello) {
  const absl::string_view words = absl::string_view(hello).substr(0, kWords);
  const absl::string_view ranks = words.substr(kMagic.size(), 2 * kRankDigits);
  int to = -1;
  if (!absl::StartsWith(words, kMagic) ||
      !absl::SimpleAtoi(ranks.substr(0, kRankDigits), &caller.rank) ||
      !absl::SimpleAtoi(ranks.substr(kRankDigits), &to) || to != rank_ ||
      caller.rank <= rank_ ||
      caller.rank >= static_cast<int>(sockets_.size()) ||
      !EqualSecrets(absl::string_view(hello).substr(kWords),
                    Proof(meeting_.token(), "calling", words, "")) ||
      !hellos_.insert(hello).second) {
    return false;
  }
  caller.hello = hello;
  caller.since = MonotonicTime::Now();
  return true;
}

bool PeerSockets::Answer(Caller& caller, const std::string& input) {
  // What fits no empty buffer of the system is a stranger's trouble.
  const MonotonicTime at_once = MonotonicTime::Now() + absl::Milliseconds(100);
  if (caller.is_stranger()) {
    if (!TakeHello(caller, input)) return false;
    caller.nonce = RandomBytes(kNonce);
    return caller.socket
        .Send(caller.nonce + Proof(meeting_.token(), "dialled", caller.hello,
                                   caller.nonce),
              at_once)
        .ok();
  }
  if (!EqualSecrets(input, Proof(meeting_.token(), "dialling", caller.hello,
                                 caller.nonce)) ||
      !caller.socket.Send(absl::string_view(&kHolds, 1), at_once).ok()) {
    return false;
  }
  const int on = 1;
  setsockopt(caller.socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A rank that has dialled again has given up what it dialled before.
  sockets_[caller.rank] = std::move(caller.socket);
  return false;
}

}  // namespace

absl::StatusOr<std::vector<Socket>> ConnectPeers(Meeting& meeting, int rank,
                                                 int world_size,
                                                 MonotonicTime deadline) {
  return PeerSockets(meeting, rank, world_size, deadline).Connect();
}

}  // namespace runtime
}  // namespace halftone
