// What the launcher of a node other than node 0 hears from the run's store, and
// tells it: ranks here may be stuck, and say nothing, when one elsewhere is
// lost, and the other way round.
#ifndef HALFTONE_RUNTIME_LAUNCH_NODE_WATCH_H_
#define HALFTONE_RUNTIME_LAUNCH_NODE_WATCH_H_

#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/launch/launch_plan.h"
#include "runtime/rendezvous/store_client.h"

namespace halftone {
namespace runtime {

class NodeWatch {
 public:
  // Connects with node 0's store in a thread of its own, as soon as that is
  // there.
  NodeWatch(const LaunchPlan& plan, const HostPort& store, int attempt);
  ~NodeWatch();

  // What made the run fail: what the store says, or that node 0 is gone (its
  // ranks are the suspects then). Nothing if it has not, or if nobody told.
  std::optional<RunFailure> failure() const;
  // The same, waiting for it at most this long. As the run has failed here, a
  // store that has not answered for a second counts as gone.
  std::optional<RunFailure> AwaitFailure(absl::Duration limit);
  // Tells the store of a failure here, soon; only the run's first one counts.
  void Tell(const RunFailure& failure);

 private:
  void Watch(const StoreClientOptions& options);
  // False: it is over.
  bool Connect(const StoreClientOptions& options);
  void Keep(RunFailure failure);
  std::optional<RunFailure> TakeWhatToTell();
  RunFailure Gone(absl::string_view why) const;

  const int ranks_of_node_0_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<RunFailure> failure_;
  std::optional<RunFailure> to_tell_;
  std::unique_ptr<StoreClient> client_;
  MonotonicTime asked_ = MonotonicTime::InfiniteFuture();  // not answered yet
  bool over_ = false;
  std::thread thread_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_NODE_WATCH_H_
