// What every communicator must do, as a parameterised test with the ranks as
// threads. An implementation's own test says
//   INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorConformance, ...);
#ifndef HALFTONE_RUNTIME_COLLECTIVE_COMMUNICATOR_CONFORMANCE_H_
#define HALFTONE_RUNTIME_COLLECTIVE_COMMUNICATOR_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

struct CommunicatorCase {
  std::string name;
  int world_size = 2;
  // The communicators of all ranks; a rank waits `timeout` for its peers.
  std::function<std::vector<std::unique_ptr<Communicator>>(
      int world_size, absl::Duration timeout)>
      make;
  // Sums are made in rank order, so the bits are known beforehand.
  bool rank_order = true;
  // Calls that differ between ranks are noticed when they are made.
  bool compares_calls = true;
  // Above 0: AllReduce adds by nodes of so many ranks.
  int ranks_per_node = 0;

  friend void PrintTo(const CommunicatorCase& value, std::ostream* out) {
    *out << value.name;
  }
};

// As those of a run end: one by one, rank 0 waits for those that use its store.
void EndTogether(std::vector<std::unique_ptr<Communicator>> ranks);

class CommunicatorConformance
    : public ::testing::TestWithParam<CommunicatorCase> {
 protected:
  void TearDown() override;
  void Connect(absl::Duration timeout = absl::Seconds(60));
  int world_size() const { return GetParam().world_size; }
  // Runs `body` for every rank, each in a thread of its own.
  void ForEachRank(const std::function<void(Communicator&)>& body);

  // The sum of all ranks' data, in the order of a node's ranks, then of nodes.
  template <typename T>
  std::vector<T> SumOf(const std::vector<std::vector<T>>& data, DType dtype,
                       ReduceOp op, float pre_scale) const;
  // Reduces random data of all ranks and compares with SumOf.
  template <typename T>
  void CheckAllReduce(DType dtype, ReduceOp op, int64_t count, float pre_scale);

  std::unique_ptr<Device> device_ = MakeCpuDevice(0, 1);
  std::unique_ptr<Stream> stream_ = *device_->CreateStream("communicate");
  std::vector<std::unique_ptr<Communicator>> ranks_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_COMMUNICATOR_CONFORMANCE_H_
