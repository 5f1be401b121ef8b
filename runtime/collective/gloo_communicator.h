// Ranks that are processes, over TCP; on one machine through memory.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_GLOO_COMMUNICATOR_H_
#define HALFTONE_RUNTIME_COLLECTIVE_GLOO_COMMUNICATOR_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/call.h"
#include "runtime/collective/gloo_mesh.h"
#include "runtime/collective/gloo_transfers.h"
#include "runtime/collective/transfers.h"
#include "runtime/rendezvous/meeting.h"
#include "runtime/rendezvous/run_watch.h"

namespace halftone {
namespace runtime {

// Beside the connections to its peers, a rank keeps two to the store: one whose
// end tells the others that it has vanished, one by which it learns such news.
// So a dead peer is named at once, whatever Gloo makes of it.
class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(std::unique_ptr<Meeting> meeting,
                   std::unique_ptr<GlooMesh> mesh,
                   std::unique_ptr<StoreClient> watcher, int rank,
                   int world_size, absl::Duration timeout);
  ~GlooCommunicator() override;
  // From now on the data of reductions, broadcasts and parts goes through
  // memory, if all ranks can share some. To be called by all ranks.
  absl::Status ShareMemory();

  absl::string_view kind() const override {
    return shared_ ? "shared_memory" : "gloo";
  }
  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream& stream) override;
  absl::Status ReduceScatter(void* data, int64_t count, DType dtype,
                             float pre_scale, Stream& stream) override;
  absl::Status Broadcast(void* data, int64_t bytes, int root,
                         Stream& stream) override;
  absl::Status GatherParts(void* data, int64_t bytes, Stream& stream) override;
  absl::Status ReduceByNodes(int ranks_per_node) override;
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) override;
  absl::Status Barrier() override;
  std::unique_ptr<Memory> Allocate(int64_t bytes) override {
    return transfers().Allocate(bytes);
  }
  absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) override;
  void Abort(const absl::Status& reason) override;

 private:
  // Runs `transfer(TransferCall)`, which waits by `how`, and turns its
  // exceptions into a Status.
  template <typename Transfer>
  absl::Status Run(const Call& call, const Transfers& how,
                   const Transfer& transfer);
  // Through memory among some ranks, each for its own; null: it cannot be.
  absl::StatusOr<std::unique_ptr<Transfers>> ShareAmong(std::vector<int> ranks);
  void Use(std::unique_ptr<Transfers> made, std::unique_ptr<Transfers>* as);
  // What moves much data.
  Transfers& transfers() {
    return by_nodes_ ? *by_nodes_ : shared_ ? *shared_ : *sockets_;
  }
  // Ends this rank's part in all transfers.
  void CloseTransfers();
  // `peer`: with whom it happened; -1 if with nobody in particular.
  absl::Status Failed(const std::string& cause, int peer);
  absl::Status OutOfMemory();  // within a call
  std::string Doing() const;   // the call or wait under way; holds mutex_
  // The run's failure as the store tells it, waited for a moment.
  std::string AwaitReason(absl::Duration timeout);
  // Asks where the others are; what it is that this rank waits for in vain.
  RunFailure InquireAboutLate();
  RunFailure ExplainBroken(const std::string& cause, int peer);
  // What the store keeps of a peer that has left; nothing: it has not.
  std::optional<std::string> WhyLeft(int peer);
  void OnFailure(const RunFailure& failure);
  std::string StatusText();

  const int rank_;
  const int world_size_;
  const absl::Duration timeout_;
  std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<GlooMesh> mesh_;
  std::unique_ptr<GlooTransfers> sockets_;

  std::mutex mutex_;                     // guards what follows
  std::unique_ptr<Transfers> shared_;    // null: over sockets; set once
  bool may_share_ = false;               // memory, where ranks can
  std::unique_ptr<Transfers> by_nodes_;  // null: at once; set once
  std::condition_variable changed_;
  Call call_;             // under way, or the last one
  int64_t calls_ = 0;     // begun
  bool inside_ = false;   // of a call
  MonotonicTime begun_;   // the call
  absl::Duration limit_;  // of it
  std::string awaited_;   // instead of call_; empty: a call
  std::string reason_;    // why the run fails; empty: it does not
  absl::Status failed_;   // what every call returns from now on

  std::unique_ptr<RunWatch> watch_;  // ends first
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_GLOO_COMMUNICATOR_H_
