// Watches the store for the end of the run, in a thread of its own.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_RUN_WATCH_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_RUN_WATCH_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "runtime/rendezvous/store_client.h"

namespace halftone {
namespace runtime {

// Where a rank says it is when another asks (a rank whose peers are late).
std::string StatusKey(int rank);
// Asks all ranks to tell theirs.
absl::Status Inquire(StoreClient& store);

class RunWatch {
 public:
  struct Callbacks {
    // The run failed, or the store is gone; called at most once.
    std::function<void(const RunFailure&)> on_failure;
    // Where this rank is.
    std::function<std::string()> status;
  };
  // `client` is the watch's own connection. `keeper` is who is to blame if the
  // store is gone: rank 0, or nobody of the ranks (-1).
  RunWatch(std::unique_ptr<StoreClient> client, int rank, int keeper,
           Callbacks callbacks);
  ~RunWatch();  // no callback after it

 private:
  void Watch();
  // The value that the store has for `key` once it is there; nothing when the
  // watch is over or the store is gone (then on_failure has been called).
  std::optional<std::string> Await(absl::string_view key);

  const std::unique_ptr<StoreClient> client_;
  const int rank_;
  const int keeper_;
  const Callbacks callbacks_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_RUN_WATCH_H_
