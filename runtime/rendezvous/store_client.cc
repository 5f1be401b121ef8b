#include "runtime/rendezvous/store_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/system/system_error.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/hmac.h"

namespace halftone {
namespace runtime {
namespace {

// How soon to come again to a store that serves an earlier attempt.
constexpr absl::Duration kStaleRetry = absl::Milliseconds(100);

MessageWriter Request(StoreRequest request) {
  MessageWriter message;
  message.U8(static_cast<uint8_t>(request));
  return message;
}

// "pid 4711 on node3"
std::string DescribeProcess() {
  char host[HOST_NAME_MAX + 1] = "?";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat("pid ", getpid(), " on ", host);
}

}  // namespace

StoreClient::StoreClient(const StoreClientOptions& options, Socket socket)
    : options_(options),
      socket_(std::move(socket)),
      local_host_(socket_.local().host) {}

absl::StatusOr<std::unique_ptr<StoreClient>> StoreClient::Connect(
    const StoreClientOptions& options, MonotonicTime deadline) {
  while (true) {
    HT_ASSIGN_OR_RETURN(Socket socket, ConnectTo(options.address, deadline));
    auto client = absl::WrapUnique(new StoreClient(options, std::move(socket)));
    absl::Status status = client->Greet(deadline);
    if (status.ok()) return {std::move(client)};
    if (!absl::IsUnavailable(status) ||
        MonotonicTime::Now() + kStaleRetry >= deadline) {
      return Reclassified(
          Annotate(status, absl::StrCat("rank ", options.rank, ": ",
                                        ToString(options.address))),
          ExitCode::kCommunication);
    }
    absl::SleepFor(kStaleRetry);
  }
}

absl::Status StoreClient::Greet(MonotonicTime deadline) {
  absl::Status status = TryToGreet(deadline);
  // A store that is just ending: another may follow it.
  return absl::IsOutOfRange(status) ? absl::UnavailableError(status.message())
                                    : status;
}

absl::Status StoreClient::TryToGreet(MonotonicTime deadline) {
  absl::StatusOr<std::string> greeting =
      socket_.Receive(kStoreMagic.size() + kNonceBytes, deadline);
  if (absl::IsOutOfRange(greeting.status()) ||
      absl::IsUnavailable(greeting.status())) {
    return greeting.status();
  }
  if (absl::IsDeadlineExceeded(greeting.status())) {
    return absl::DeadlineExceededError(
        "whoever listens there says nothing: rank 0 or the launcher is "
        "stopped, or another program has the port");
  }
  if (!greeting.ok() || absl::string_view(*greeting).substr(
                            0, kStoreMagic.size()) != kStoreMagic) {
    return absl::InvalidArgumentError(
        "who answers there is not a Halftone rendezvous; another program has "
        "the port: choose another (launch: --master HOST:PORT; ranks of other "
        "launchers: MASTER_PORT)");
  }
  const std::string server_nonce = greeting->substr(kStoreMagic.size());
  const std::string nonce = RandomBytes(kNonceBytes);
  MessageWriter hello = Request(StoreRequest::kHello);
  hello.I64(options_.rank).I64(options_.world_size).I64(options_.attempt);
  hello.U8(options_.is_member ? 1 : 0).Text(DescribeProcess()).Text(nonce);
  hello.Text(ClientProof(options_.token, server_nonce, nonce, options_.rank));
  HT_RETURN_IF_ERROR(socket_.Send(hello.Frame(), deadline));
  HT_ASSIGN_OR_RETURN(const std::string reply, ReceiveFrame(deadline));
  MessageReader message(reply);
  switch (static_cast<StoreReply>(message.U8())) {
    case StoreReply::kOk:
      if (!EqualSecrets(message.Text(),
                        ServerProof(options_.token, server_nonce, nonce))) {
        return absl::PermissionDeniedError(
            "who answers there does not know this run's token");
      }
      return absl::OkStatus();
    case StoreReply::kRefused:
      return absl::PermissionDeniedError(
          absl::StrCat("this rank is refused: ", message.Text()));
    default:
      return absl::UnavailableError("it still serves an earlier attempt");
  }
}

absl::StatusOr<std::string> StoreClient::ReceiveFrame(MonotonicTime deadline) {
  HT_ASSIGN_OR_RETURN(const std::string head, socket_.Receive(4, deadline));
  const int64_t length = FrameLength(head);
  // A reply may hold the values of many keys.
  if (length > 64 * kMaxFrame) {
    return absl::InvalidArgumentError("the store's reply is too long");
  }
  return socket_.Receive(length, deadline);
}

absl::StatusOr<std::string> StoreClient::Call(const MessageWriter& request,
                                              absl::Duration timeout) {
  std::lock_guard<std::mutex> lock(mutex_);
  const MonotonicTime deadline =
      MonotonicTime::Now() + timeout + absl::Nanoseconds(patience_ns_.load());
  absl::Status sent = socket_.Send(request.Frame(), deadline);
  absl::StatusOr<std::string> reply =
      sent.ok() ? ReceiveFrame(deadline) : absl::StatusOr<std::string>(sent);
  if (reply.ok()) {
    if (*reply == std::string(1, static_cast<char>(StoreReply::kClosed))) {
      store_has_closed_ = true;
    }
    return reply;
  }
  // What would answer the next request may be this one's answer, late; and a
  // machine that is gone is not waited for again.
  Shutdown();
  return CommunicationError("rank ", options_.rank, ": the rendezvous at ",
                            ToString(options_.address), " is gone (",
                            reply.status().message(), ")");
}

absl::Status StoreClient::Unexpected(absl::string_view reply) const {
  MessageReader message(reply);
  switch (static_cast<StoreReply>(message.U8())) {
    case StoreReply::kOk:
      return absl::OkStatus();
    case StoreReply::kClosed:
      return CommunicationError("the rendezvous at ",
                                ToString(options_.address), " was closed");
    case StoreReply::kRefused:
      return CommunicationError("the rendezvous at ",
                                ToString(options_.address), ": ",
                                message.Text());
    default:
      return CommunicationError("the rendezvous at ",
                                ToString(options_.address),
                                " gave an answer that makes no sense");
  }
}

absl::Status StoreClient::Set(absl::string_view key, absl::string_view value) {
  MessageWriter request = Request(StoreRequest::kSet);
  HT_ASSIGN_OR_RETURN(
      const std::string reply,
      Call(request.Text(key).Text(value), absl::ZeroDuration()));
  return Unexpected(reply);
}

absl::StatusOr<std::optional<std::string>> StoreClient::Get(
    absl::string_view key) {
  HT_ASSIGN_OR_RETURN(WaitResult result,
                      Wait({std::string(key)}, absl::ZeroDuration()));
  if (result.values.empty()) return {std::nullopt};
  return {std::optional<std::string>(std::move(result.values[0]))};
}

absl::StatusOr<WaitResult> StoreClient::Wait(
    const std::vector<std::string>& keys, absl::Duration timeout) {
  MessageWriter request = Request(StoreRequest::kWait);
  request.I64(absl::ToInt64Milliseconds(timeout));
  request.I64(static_cast<int64_t>(keys.size()));
  for (const std::string& key : keys) request.Text(key);
  HT_ASSIGN_OR_RETURN(const std::string reply, Call(request, timeout));
  MessageReader message(reply);
  const auto kind = static_cast<StoreReply>(message.U8());
  WaitResult result;
  if (kind == StoreReply::kTimedOut) {
    while (message.ok() && !message.done()) {
      result.missing.push_back(message.Text());
    }
    return result;
  }
  HT_RETURN_IF_ERROR(Unexpected(reply));
  for (size_t i = 0; i < keys.size(); ++i) {
    result.values.push_back(message.Text());
  }
  return result;
}

absl::StatusOr<int64_t> StoreClient::Add(absl::string_view key, int64_t delta) {
  MessageWriter request = Request(StoreRequest::kAdd);
  HT_ASSIGN_OR_RETURN(const std::string reply,
                      Call(request.Text(key).I64(delta), absl::ZeroDuration()));
  HT_RETURN_IF_ERROR(Unexpected(reply));
  MessageReader message(reply);
  message.U8();
  return message.I64();
}

absl::Status StoreClient::Fail(const RunFailure& failure) {
  MessageWriter request = Request(StoreRequest::kFail);
  HT_ASSIGN_OR_RETURN(
      const std::string reply,
      Call(request.Text(ToText(failure)), absl::ZeroDuration()));
  return Unexpected(reply);
}

absl::Status StoreClient::Bye() {
  HT_ASSIGN_OR_RETURN(const std::string reply,
                      Call(Request(StoreRequest::kBye), absl::ZeroDuration()));
  return Unexpected(reply);
}

void StoreClient::Shutdown() { shutdown(socket_.fd(), SHUT_RDWR); }

}  // namespace runtime
}  // namespace halftone
