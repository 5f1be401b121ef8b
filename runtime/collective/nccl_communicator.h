// Ranks that are GPUs, over NCCL.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_NCCL_COMMUNICATOR_H_
#define HALFTONE_RUNTIME_COLLECTIVE_NCCL_COMMUNICATOR_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/call.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/nccl_api.h"
#include "runtime/device/cuda/cuda_stream.h"

namespace halftone {
namespace runtime {

// What the communicator wants of its device.
struct NcclDevice {
  std::function<absl::Status()> use;  // makes it the thread's device
  std::function<void(WaitGuard)> set_wait_guard;
};

struct NcclLimits {
  absl::Duration connect = absl::Seconds(60);
  absl::Duration collective = absl::Minutes(5);
  // For the peers to come to the end as well; then this rank leaves alone.
  absl::Duration leave = absl::Seconds(2);
};

// Collectives are enqueued on the given stream and may be captured; whatever is
// on the host goes through `host`, a communicator of the same ranks, which also
// knows who is gone or late. When the host waits long for the device, the wait
// fails as soon as a peer is gone, NCCL reports an error, or after
// `limits.collective`, with the rank named; what hangs on the device is then
// aborted. max and min of NaN are NCCL's.
//
// ncclCommAbort stops what runs and then waits for every graph that holds one
// of its collectives, so OnAbort's function is called before it. All ranks end
// together, after their graphs.
class NcclCommunicator : public Communicator {
 public:
  // A collective. Errors name who did not come, or what NCCL says.
  static absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      std::unique_ptr<Communicator> host, NcclDevice device,
      const NcclLimits& limits, const NcclApi& api);
  ~NcclCommunicator() override;

  absl::string_view kind() const override { return "nccl"; }
  int rank() const override { return host_->rank(); }
  int world_size() const override { return host_->world_size(); }
  bool enqueues() const override { return true; }

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
  absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) override;
  void Abort(const absl::Status& reason) override;
  void OnAbort(std::function<bool()> drop) override;

 private:
  NcclCommunicator(std::unique_ptr<Communicator> host, NcclDevice device,
                   const NcclLimits& limits, const NcclApi& api);

  absl::StatusOr<ncclUniqueId> AgreeOnId();
  absl::Status Open(const ncclUniqueId& id);
  // Calls `call` (a function of NCCL) and waits until NCCL has taken it.
  absl::Status Enqueue(absl::string_view name, const std::string& what,
                       const std::function<ncclResult_t()>& call);
  absl::Status AwaitTaken(const std::string& what);
  // Whether NCCL is ready for the next call.
  absl::StatusOr<bool> IsReady();
  // A long wait for the device.
  absl::Status AwaitDevice(const std::function<absl::StatusOr<bool>()>& done);
  absl::StatusOr<ncclRedOp_t> OperatorOf(DType dtype, ReduceOp op,
                                         float pre_scale);
  // All there are; those that came of another before it. Holds mutex_.
  std::vector<ncclComm_t> Comms() const;
  // The one in which sums begin.
  ncclComm_t adding() const { return inside_ != nullptr ? inside_ : comm_; }
  absl::Status AllReduceByNodes(const Call& call, char* data, ncclRedOp_t how,
                                Stream& stream);
  // Ends what is on the device and makes every later call fail.
  absl::Status Fail(const absl::Status& status);
  // `status` is what this rank's calls return, `reason` what the peers hear.
  void FailWith(const absl::Status& status, const absl::Status& reason);
  // Ends what is on the device, unless a capture is under way.
  void AbortDevice();
  void Leave();

  const NcclApi& api_;
  const NcclLimits limits_;
  const NcclDevice device_;
  const std::unique_ptr<Communicator> host_;
  std::map<std::pair<DType, float>, ncclRedOp_t> pre_scaled_sums_;
  int ranks_per_node_ = 0;  // 0: all ranks add at once

  std::mutex mutex_;           // guards what follows
  ncclComm_t comm_ = nullptr;  // null before Open and after an abort
  // By nodes: of this rank's node, and of the ranks at its place in all nodes.
  ncclComm_t inside_ = nullptr, between_ = nullptr;
  absl::Status failed_;  // what every call returns from now on
  std::function<bool()> drop_graphs_;
};

// For GpuInterface: on a CudaDevice, with NCCL itself.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(
    std::unique_ptr<Communicator> host, Device* device,
    absl::Duration connect_timeout, absl::Duration timeout);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_NCCL_COMMUNICATOR_H_
