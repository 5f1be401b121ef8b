// The key-value store in which the ranks of a run find each other, and which
// notices when one of them vanishes. It runs in the launcher, or in rank 0.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_STORE_SERVER_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_STORE_SERVER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

// Keys that the store itself sets: "member/R" once rank R has come (its value
// is the rank's description), "left/R" once it has said good-bye, and, once,
// kFailureKey together with kWakeKey; and kReachedKey.
inline constexpr absl::string_view kFailureKey = "failure";
// For whom one failure or inquiry (run_watch.h) is as good as the other.
inline constexpr absl::string_view kWakeKey = "wake";
// An address of this machine that a peer has reached it by; one of a network
// rather than the loopback once there was such a peer.
inline constexpr absl::string_view kReachedKey = "address/store";
std::string MemberKey(int rank);
std::string LeftKey(int rank);

// Why a run cannot go on.
struct RunFailure {
  std::vector<int> suspects;  // ranks that caused it, where known
  std::string text;
};
std::string ToText(const RunFailure& failure);
RunFailure RunFailureFromText(absl::string_view text);

struct StoreServerOptions {
  std::string host;  // to listen on; empty: all addresses
  int port = 0;      // 0: any free one
  // How to choose another port, for an error.
  std::string port_remedy = "with --master HOST:PORT";
  int world_size = 1;
  std::string token;  // may only be empty on the loopback
  int attempt = 0;    // of the launcher; clients of another one are refused
};

class StoreServer {
 public:
  // Listens and serves in a thread of its own.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(
      const StoreServerOptions& options);
  // Ends all connections; clients that wait are told so.
  virtual ~StoreServer() = default;

  // The address that it listens on.
  virtual HostPort address() const = 0;
  // The first failure: reported by a rank, or a rank that vanished.
  virtual std::optional<RunFailure> failure() const = 0;
  // Reports one; only the first counts.
  virtual void Fail(const RunFailure& failure) = 0;
  // Ranks that came and neither said good-bye nor vanished.
  virtual std::vector<int> members() const = 0;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_STORE_SERVER_H_
