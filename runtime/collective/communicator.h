// Collectives among the ranks of a run: in_process (threads), gloo (CPU
// processes; those of one machine by way of shared memory), nccl (GPUs, beside
// one of the others). Device-free: buffers are pointers of the kind of memory
// that the implementation serves.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_COMMUNICATOR_H_
#define HALFTONE_RUNTIME_COLLECTIVE_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "graph/base/dtype_fwd.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

enum class ReduceOp : uint8_t { kSum, kMax, kMin };

// Calls must be made by all ranks in the same order. After an error, or after
// Abort, every later call fails at once. An error (kCommunication) names the
// collective, this rank, the peer where known, and the time waited.
class Communicator {
 public:
  virtual ~Communicator() = default;
  // "in_process", "gloo", "shared_memory", "nccl"
  virtual absl::string_view kind() const = 0;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // Whether AllReduce, Broadcast, GatherParts and ReduceScatter are enqueued on
  // the stream and may be captured; else they are done on return.
  virtual bool enqueues() const { return false; }

  // In-place reduction of `count` elements (f32 f16 bf16 f64 i32 i64 u8; max
  // and min where ordered). f16 and bf16 sums: each pairwise addition in f32,
  // rounded to the dtype. All ranks get the same bits. Enqueued on `stream`
  // where the device has streams; else done on return. For float sums every
  // rank's elements are first multiplied by `pre_scale` (a power of two) and
  // rounded to the dtype; 1 leaves them as they are. It keeps f16 sums in
  // range and is the library's own where it has one (NCCL's PreMulSum).
  virtual absl::Status AllReduce(void* data, int64_t count, DType dtype,
                                 ReduceOp op, float pre_scale,
                                 Stream& stream) = 0;
  // `root`'s bytes to all.
  virtual absl::Status Broadcast(void* data, int64_t bytes, int root,
                                 Stream& stream) = 0;
  // `data` is a part of `bytes` for every rank, by rank: this rank's is there,
  // the others' come from them. All ranks get the same bytes.
  virtual absl::Status GatherParts(void* data, int64_t bytes,
                                   Stream& stream) = 0;
  // `data` is a part of `count` elements for every rank, by rank: this rank's
  // becomes the sum of all ranks', with AllReduce's bits where that adds in
  // rank order (NCCL's does not); what the others hold afterwards is undefined.
  virtual absl::Status ReduceScatter(void* data, int64_t count, DType dtype,
                                     float pre_scale, Stream& stream) {
    return AllReduce(data, count * world_size(), dtype, ReduceOp::kSum,
                     pre_scale, stream);
  }
  // Host bytes of every rank, by rank. Sizes may differ. For set-up only.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) = 0;
  virtual absl::Status Barrier() = 0;
  // Host memory in which an AllReduce is faster than in other; null: any is as
  // good. Not a collective: each rank for itself, when it likes.
  virtual std::unique_ptr<Memory> Allocate(int64_t bytes) {
    (void)bytes;
    return nullptr;
  }
  // For an implementation that works beside this one on the same ranks: waits
  // until `done`, which never blocks, says true. Its errors are handed on,
  // those of class kCommunication with what is known of the peers. Fails as a
  // collective called `what` does: a rank is gone, aborted, or, after
  // `timeout`, is named as not being in such a wait. An error of `done` of
  // another class leaves this communicator usable.
  virtual absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) = 0;
  // Makes all ranks' pending and later calls fail, as far as it can reach.
  virtual void Abort(const absl::Status& reason) = 0;
  // An abort where collectives are enqueued waits for all graphs that hold
  // some, so it has them dropped first: by `drop`, which never blocks. It says
  // false while a capture is under way, whose graph cannot be dropped yet: the
  // communicator fails, and who captures calls Abort when that has ended.
  // Called on the threads that make the rank's calls; null: nobody captures.
  virtual void OnAbort(std::function<bool()> drop) { (void)drop; }
  // A collective, for set-up: from now on AllReduce and ReduceScatter add in
  // two levels, inside each run of `ranks_per_node` consecutive ranks and then
  // between these, which differs from adding at once by rounding. It divides
  // the world size; 1 and the world size leave all as it is.
  virtual absl::Status ReduceByNodes(int ranks_per_node) = 0;
};

// The communicators of `world_size` ranks that are threads of this process;
// a rank that waits longer than `timeout` for its peers fails.
std::vector<std::unique_ptr<Communicator>> MakeInProcessCommunicators(
    int world_size, absl::Duration timeout);

struct GlooOptions {
  int rank = 0;
  int world_size = 1;
  std::string master_host;  // rank 0 listens there
  int master_port = 0;
  std::string interface_address;  // own address; empty: the one that reaches
                                  // the master
  std::string token;  // shared secret of the run; peers without it are refused
  absl::Duration connect_timeout = absl::Seconds(60);
  absl::Duration timeout = absl::Seconds(60);  // of one collective
};
// Meets the peers over the rendezvous store (runtime/rendezvous) and connects.
// Within connect_timeout, else an error that names the ranks that are missing.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectGloo(
    const GlooOptions& options);

// A communicator of one rank: every call returns at once.
std::unique_ptr<Communicator> MakeSingleCommunicator();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_COMMUNICATOR_H_
