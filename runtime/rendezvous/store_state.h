// The store's data and rules, apart from sockets and threads.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_STORE_STATE_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_STORE_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/store_message.h"
#include "runtime/rendezvous/store_server.h"

namespace halftone {
namespace runtime {

// One client as the store knows it.
struct StoreClientState {
  std::string server_nonce;
  bool admitted = false;
  bool is_member = false;  // its end is the rank's end
  bool said_bye = false;
  int rank = -1;
  std::string description;
  // A wait that cannot be answered yet.
  std::vector<std::string> awaited;
  MonotonicTime deadline = MonotonicTime::InfiniteFuture();
};

class StoreState {
 public:
  explicit StoreState(const StoreServerOptions& options) : options_(options) {}

  // Handles one request (a frame without its length). Returns the reply's
  // frame; empty if the client has to wait, nothing if it must be cut off.
  std::optional<std::string> Handle(StoreClientState& client,
                                    absl::string_view request);
  // The reply to a waiting client, once its keys are there or time is up.
  std::optional<std::string> Poll(StoreClientState& client, MonotonicTime now);
  // The client's connection has ended.
  void Ended(const StoreClientState& client);

  // A client has reached the store by this address.
  void Reached(const std::string& host);
  void Fail(const RunFailure& failure);
  std::optional<RunFailure> failure() const;
  std::vector<int> members() const;

 private:
  std::string Hello(StoreClientState& client, MessageReader& message);
  std::string Admit(StoreClientState& client, absl::string_view client_nonce);
  std::optional<std::string> Set(MessageReader& message);
  std::optional<std::string> Add(MessageReader& message);
  std::optional<std::string> Wait(StoreClientState& client,
                                  MessageReader& message);
  // False if the store is full.
  bool Put(const std::string& key, const std::string& value);

  const StoreServerOptions options_;
  std::map<std::string, std::string> values_;
  std::map<int, std::string> members_;  // descriptions by rank
  int64_t bytes_ = 0;
};

// The reply to a client that waits when the store goes away.
std::string ClosedReply();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_STORE_STATE_H_
