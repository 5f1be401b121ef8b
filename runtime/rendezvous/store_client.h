// A rank's connection to the store.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_STORE_CLIENT_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_STORE_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/socket.h"
#include "runtime/rendezvous/store_message.h"
#include "runtime/rendezvous/store_server.h"

namespace halftone {
namespace runtime {

struct StoreClientOptions {
  HostPort address;
  int rank = 0;
  int world_size = 1;
  std::string token;
  int attempt = 0;
  // Whether the end of this connection without a good-bye means that the rank
  // has vanished. One connection of a rank may say so.
  bool is_member = true;
};

// What a wait came to.
struct WaitResult {
  std::vector<std::string> values;   // in the order of the keys, if complete
  std::vector<std::string> missing;  // keys that nobody set in time
};

// May be used by several threads; one request is under way at a time.
class StoreClient {
 public:
  // Tries until `deadline`. Errors (kCommunication) name the address; a
  // refusal says why.
  static absl::StatusOr<std::unique_ptr<StoreClient>> Connect(
      const StoreClientOptions& options, MonotonicTime deadline);

  absl::Status Set(absl::string_view key, absl::string_view value);
  // The value, if there is one now.
  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key);
  // Waits until all keys are there, at most `timeout`.
  absl::StatusOr<WaitResult> Wait(const std::vector<std::string>& keys,
                                  absl::Duration timeout);
  // Adds to a decimal counter that starts at 0; the new value.
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta);
  // Tells all ranks that the run cannot go on; only the first report counts.
  absl::Status Fail(const RunFailure& failure);
  // From here on the end of the connection is no failure.
  absl::Status Bye();
  // How long an answer may take from here on, beyond what a request asks the
  // store to wait; 20 s at first.
  void set_patience(absl::Duration patience) {
    patience_ns_ = absl::ToInt64Nanoseconds(patience);
  }
  // Ends the connection; a request under way fails.
  void Shutdown();
  // Whether the store has said that it ends, as it does when all ranks have
  // left. (One that is killed says nothing.)
  bool store_has_closed() const { return store_has_closed_; }

  // This machine's address on the way to the store.
  const std::string& local_host() const { return local_host_; }

 private:
  StoreClient(const StoreClientOptions& options, Socket socket);

  // Sends the hello and reads the answer; kUnavailable: worth another try.
  absl::Status Greet(MonotonicTime deadline);
  absl::Status TryToGreet(MonotonicTime deadline);
  absl::StatusOr<std::string> Call(const MessageWriter& request,
                                   absl::Duration timeout);
  absl::StatusOr<std::string> ReceiveFrame(MonotonicTime deadline);
  absl::Status Unexpected(absl::string_view reply) const;

  const StoreClientOptions options_;
  std::mutex mutex_;
  Socket socket_;
  std::string local_host_;
  std::atomic<bool> store_has_closed_{false};
  std::atomic<int64_t> patience_ns_{20'000'000'000};
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_STORE_CLIENT_H_
