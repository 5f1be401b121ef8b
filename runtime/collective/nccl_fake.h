// A table of functions that play NCCL on the host, and ranks that use it: for
// tests of what is called in which order, and of errors and waits.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_NCCL_FAKE_H_
#define HALFTONE_RUNTIME_COLLECTIVE_NCCL_FAKE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/collective/nccl_communicator.h"

namespace halftone {
namespace runtime {

// What all ranks' NCCL does in a test.
struct NcclBehaviour {
  ncclResult_t unique_id = ncclSuccess;
  ncclResult_t init = ncclInProgress;
  int polls_until_ready = 3;  // after each call; negative: never ready
  ncclResult_t enqueue = ncclInProgress;
  bool leaves = true;      // whether ncclCommFinalize comes to an end
  int ranks_per_node = 1;  // of what ncclCommSplit makes
};

// One rank's side of it.
struct FakeNcclComm {
  std::string id;
  int blocking = 1;
  std::vector<std::string> log;
  std::string scalar;  // the bytes of the last PreMulSum
  int polls = 0;       // until ready
  std::atomic<ncclResult_t> error{ncclSuccess};
  int waits = 0;  // of this rank through the host
  // Held by every collective that waits to run or is in a graph; ncclCommAbort
  // fails the test if there is one: the real one would not return.
  std::shared_ptr<int> held;
  // What ncclCommSplit makes, in this order, is logged with the whole.
  FakeNcclComm* whole = nullptr;
  ncclComm_t* made = nullptr;  // where it is put when the whole is ready
  std::string name;            // "inside ", "between "; of the whole empty

  ncclResult_t Begin(const std::string& what, ncclResult_t result);
};

// Collectives on streams of a fake device are work there: "all_reduce", and
// nothing is reduced.
const NcclApi& FakeNccl();

class NcclTest : public ::testing::Test {
 protected:
  static constexpr int kMaxRanks = 4;

  NcclTest();
  ~NcclTest() override;

  static NcclBehaviour& behaviour();
  static FakeNcclComm& comm(int rank);

  void ForEachRank(const std::function<void(int rank)>& body);
  // The status of each rank's Connect.
  std::vector<absl::Status> Connect(
      absl::Duration host_timeout = absl::Seconds(60));
  void ConnectAll();
  // A wait for a device that is never done.
  absl::Status WaitForever(int rank);

  int world_size_ = 2;
  int absent_ = -1;
  NcclLimits limits_;
  std::unique_ptr<Device> device_ = MakeCpuDevice(0, 1);
  std::unique_ptr<Stream> stream_ = *device_->CreateStream("communicate");
  std::unique_ptr<Communicator> ranks_[kMaxRanks];
  WaitGuard guards_[kMaxRanks];
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_NCCL_FAKE_H_
