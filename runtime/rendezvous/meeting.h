// All ranks of a run come together in its store.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_MEETING_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_MEETING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/environment.h"
#include "runtime/rendezvous/same_machine.h"
#include "runtime/rendezvous/store_client.h"
#include "runtime/rendezvous/store_server.h"

namespace halftone {
namespace runtime {

struct MeetingOptions {
  RankPlacement place;
  std::string token;
  absl::Duration timeout = absl::Seconds(60);
  std::string tmp_dir;      // for ranks of one machine; empty: /tmp
  std::string own_address;  // of this rank for its peers; empty: found
};

class Meeting {
 public:
  // Returns when all ranks are there; rank 0 serves the store unless somebody
  // else does. After `timeout`, an error (kCommunication) names those missing.
  // Ranks of one machine find each other's secret in a private file if they
  // were given none; others must have one (kUsage).
  static absl::StatusOr<std::unique_ptr<Meeting>> Join(
      const MeetingOptions& options);
  // Says good-bye. Rank 0 waits a while for the others to do so too.
  ~Meeting();

  // The connection whose end is the rank's end.
  StoreClient& store() { return *store_; }
  // One more connection, for a thread that waits.
  absl::StatusOr<std::unique_ptr<StoreClient>> ConnectWatcher() const;
  // Where peers can reach this rank.
  const std::string& own_address() const { return own_address_; }
  // The rank that serves the store; -1 if the launcher does.
  int store_keeper() const { return options_.place.master_served ? -1 : 0; }
  const HostPort& master() const { return client_options_.address; }
  const std::string& token() const { return client_options_.token; }

 private:
  explicit Meeting(const MeetingOptions& options);

  absl::Status Open();
  // Where rank 0 listens: places to try in turn.
  std::vector<HostPort> Places() const;
  std::string Job() const;
  absl::Status Serve();
  absl::Status StartServer(StoreServerOptions options);
  absl::Status FindByFile();
  absl::Status FindAmongPlaces();
  absl::Status AwaitAll();
  absl::Status FindOwnAddress();

  const MeetingOptions options_;
  const bool by_file_;
  const MonotonicTime deadline_;
  StoreClientOptions client_options_;
  std::string meeting_file_;  // that this rank wrote
  std::unique_ptr<UnlinkedIfEnded> unlinked_if_ended_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<StoreClient> store_;
  std::string own_address_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_MEETING_H_
