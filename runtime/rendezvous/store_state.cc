#include "runtime/rendezvous/store_state.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/hmac.h"
#include "runtime/rendezvous/store_message.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;  // of all keys and values
constexpr int64_t kMaxAwaited = 100000;           // keys in one wait

std::string Reply(StoreReply reply) {
  return MessageWriter().U8(static_cast<uint8_t>(reply)).Frame();
}

std::string Refusal(absl::string_view reason) {
  return MessageWriter()
      .U8(static_cast<uint8_t>(StoreReply::kRefused))
      .Text(reason)
      .Frame();
}

}  // namespace

std::string MemberKey(int rank) { return absl::StrCat("member/", rank); }
std::string LeftKey(int rank) { return absl::StrCat("left/", rank); }
std::string ClosedReply() { return Reply(StoreReply::kClosed); }

std::string ToText(const RunFailure& failure) {
  return absl::StrCat(absl::StrJoin(failure.suspects, ","), "\n", failure.text);
}

RunFailure RunFailureFromText(absl::string_view text) {
  const size_t line = std::min(text.find('\n'), text.size());
  RunFailure failure;
  for (absl::string_view word :
       absl::StrSplit(text.substr(0, line), ',', absl::SkipEmpty())) {
    int rank = 0;
    if (absl::SimpleAtoi(word, &rank)) failure.suspects.push_back(rank);
  }
  failure.text = std::string(text.substr(std::min(line + 1, text.size())));
  return failure;
}

std::string StoreState::Hello(StoreClientState& client,
                              MessageReader& message) {
  client.rank = static_cast<int>(message.I64());
  const int64_t world_size = message.I64();
  const int64_t attempt = message.I64();
  client.is_member = message.U8() != 0;
  client.description = message.Text();
  const std::string nonce = message.Text();
  const std::string proof = message.Text();
  if (!message.done() ||
      !EqualSecrets(proof, ClientProof(options_.token, client.server_nonce,
                                       nonce, client.rank))) {
    return Refusal(
        "it does not have this run's token (HALFTONE_TOKEN or "
        "HALFTONE_TOKEN_FILE), or belongs to another run");
  }
  if (attempt != options_.attempt) {
    return attempt > options_.attempt
               ? Reply(StoreReply::kNotYet)
               : Refusal(absl::StrCat("it belongs to attempt ", attempt,
                                      "; this is attempt ", options_.attempt));
  }
  if (world_size != options_.world_size) {
    return Refusal(absl::StrCat("it expects ", world_size,
                                " ranks; this run has ", options_.world_size));
  }
  if (client.rank < 0 || client.rank >= options_.world_size) {
    return Refusal(absl::StrCat("there is no rank ", client.rank, " among ",
                                options_.world_size));
  }
  auto taken = values_.find(MemberKey(client.rank));
  if (client.is_member && taken != values_.end()) {
    return Refusal(absl::StrCat("rank ", client.rank,
                                " is already there: ", taken->second));
  }
  return Admit(client, nonce);
}

std::string StoreState::Admit(StoreClientState& client,
                              absl::string_view client_nonce) {
  client.admitted = true;
  if (client.is_member) {
    members_[client.rank] = client.description;
    Put(MemberKey(client.rank), client.description);
  }
  return MessageWriter()
      .U8(static_cast<uint8_t>(StoreReply::kOk))
      .Text(ServerProof(options_.token, client.server_nonce, client_nonce))
      .Frame();
}

bool StoreState::Put(const std::string& key, const std::string& value) {
  const auto [it, added] = values_.try_emplace(key);
  const int64_t grows = static_cast<int64_t>(value.size()) -
                        static_cast<int64_t>(it->second.size()) +
                        (added ? static_cast<int64_t>(key.size()) : 0);
  if (grows > 0 && bytes_ + grows > kMaxBytes) {
    if (added) values_.erase(it);
    return false;
  }
  bytes_ += grows;
  it->second = value;
  return true;
}

std::optional<std::string> StoreState::Handle(StoreClientState& client,
                                              absl::string_view request) {
  MessageReader message(request);
  const auto kind = static_cast<StoreRequest>(message.U8());
  if (!client.admitted) {
    if (kind != StoreRequest::kHello) return std::nullopt;
    return Hello(client, message);
  }
  switch (kind) {
    case StoreRequest::kSet:
      return Set(message);
    case StoreRequest::kAdd:
      return Add(message);
    case StoreRequest::kWait:
      return Wait(client, message);
    case StoreRequest::kFail: {
      const RunFailure failure = RunFailureFromText(message.Text());
      if (!message.done()) return std::nullopt;
      Fail(failure);
      return Reply(StoreReply::kOk);
    }
    case StoreRequest::kBye:
      client.said_bye = true;
      if (client.is_member) {
        members_.erase(client.rank);
        Put(LeftKey(client.rank), client.description);
      }
      return Reply(StoreReply::kOk);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> StoreState::Set(MessageReader& message) {
  const std::string key = message.Text();
  const std::string value = message.Text();
  if (!message.done()) return std::nullopt;
  return Put(key, value) ? Reply(StoreReply::kOk)
                         : Refusal("the store is full");
}

std::optional<std::string> StoreState::Add(MessageReader& message) {
  const std::string key = message.Text();
  const int64_t delta = message.I64();
  if (!message.done()) return std::nullopt;
  auto it = values_.find(key);
  int64_t old = 0;
  if (it != values_.end()) (void)absl::SimpleAtoi(it->second, &old);
  const int64_t value = static_cast<int64_t>(static_cast<uint64_t>(old) +
                                             static_cast<uint64_t>(delta));
  if (!Put(key, absl::StrCat(value))) return Refusal("the store is full");
  return MessageWriter()
      .U8(static_cast<uint8_t>(StoreReply::kOk))
      .I64(value)
      .Frame();
}

std::optional<std::string> StoreState::Wait(StoreClientState& client,
                                            MessageReader& message) {
  const int64_t milliseconds = message.I64();
  const int64_t count = message.I64();
  if (count < 0 || count > kMaxAwaited) return std::nullopt;
  client.awaited.clear();
  for (int64_t i = 0; i < count && message.ok(); ++i) {
    client.awaited.push_back(message.Text());
  }
  if (!message.done()) return std::nullopt;
  const MonotonicTime now = MonotonicTime::Now();
  client.deadline = now + absl::Milliseconds(milliseconds);
  return Poll(client, now).value_or("");
}

std::optional<std::string> StoreState::Poll(StoreClientState& client,
                                            MonotonicTime now) {
  if (client.deadline == MonotonicTime::InfiniteFuture()) return std::nullopt;
  MessageWriter found;
  MessageWriter missing;
  found.U8(static_cast<uint8_t>(StoreReply::kOk));
  missing.U8(static_cast<uint8_t>(StoreReply::kTimedOut));
  bool all = true;
  for (const std::string& key : client.awaited) {
    auto it = values_.find(key);
    if (it == values_.end()) {
      all = false;
      missing.Text(key);
    } else {
      found.Text(it->second);
    }
  }
  if (!all && now < client.deadline) return std::nullopt;
  client.deadline = MonotonicTime::InfiniteFuture();
  return all ? found.Frame() : missing.Frame();
}

void StoreState::Ended(const StoreClientState& client) {
  if (!client.admitted || !client.is_member || client.said_bye) return;
  members_.erase(client.rank);
  Fail({{client.rank},
        absl::StrCat("rank ", client.rank, " (", client.description,
                     ") vanished")});
}

void StoreState::Reached(const std::string& host) {
  const std::string key(kReachedKey);
  auto known = values_.find(key);
  if (known == values_.end() || IsLoopback(known->second)) Put(key, host);
}

void StoreState::Fail(const RunFailure& failure) {
  if (values_.count(std::string(kFailureKey)) > 0) return;
  Put(std::string(kFailureKey), ToText(failure));
  Put(std::string(kWakeKey), "");
}

std::optional<RunFailure> StoreState::failure() const {
  auto it = values_.find(std::string(kFailureKey));
  if (it == values_.end()) return std::nullopt;
  return RunFailureFromText(it->second);
}

std::vector<int> StoreState::members() const {
  std::vector<int> ranks;
  for (const auto& [rank, description] : members_) ranks.push_back(rank);
  return ranks;
}

}  // namespace runtime
}  // namespace halftone
