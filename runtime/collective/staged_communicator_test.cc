#include "runtime/collective/staged_communicator.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/communicator_conformance.h"
#include "runtime/collective/on_device.h"
#include "runtime/device/fake_device.h"

namespace halftone {
namespace runtime {
namespace {

std::unique_ptr<FakeDevice> Deferred(int ordinal) {
  FakeDeviceOptions options;
  options.ordinal = ordinal;
  options.deferred = true;
  return MakeFakeDevice(options);
}

// Ranks whose devices do only what is waited for.
std::vector<std::unique_ptr<Communicator>> Connect(int world_size,
                                                   absl::Duration timeout) {
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (auto& host : MakeInProcessCommunicators(world_size, timeout)) {
    std::unique_ptr<Device> device = Deferred(host->rank());
    auto staged = MakeStagedCommunicator(std::move(host), device.get());
    EXPECT_TRUE(staged.ok()) << staged.status();
    ranks.push_back(MakeOnDevice(std::move(device), *std::move(staged)));
  }
  return ranks;
}

INSTANTIATE_TEST_SUITE_P(Staged, CommunicatorConformance,
                         ::testing::Values(CommunicatorCase{"of_1", 1, Connect},
                                           CommunicatorCase{"of_2", 2, Connect},
                                           CommunicatorCase{"of_3", 3,
                                                            Connect}),
                         [](const auto& info) { return info.param.name; });

// Nothing is waited for between calls on different streams, and the host's
// buffer is one.
TEST(StagedCommunicator, StreamsMayTakeTurns) {
  auto hosts = MakeInProcessCommunicators(2, absl::Seconds(60));
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&hosts, r] {
      const auto device = Deferred(r);
      const auto compute = *device->CreateStream("compute");
      const auto communicate = *device->CreateStream("communicate");
      const auto memory = *device->Allocate(8 * sizeof(float));
      float* const data = static_cast<float*>(memory->data());
      auto ranks = MakeStagedCommunicator(std::move(hosts[r]), device.get());
      ASSERT_TRUE(ranks.ok()) << ranks.status();
      std::vector<float> host(8);
      for (int i = 0; i < 8; ++i) host[i] = static_cast<float>(i + 10 * r);
      ASSERT_TRUE(compute->Copy(data, host.data(), 32).ok());
      ASSERT_TRUE(compute->Synchronize().ok());
      for (int i = 0; i < 8; ++i) {
        Stream& stream = i % 2 == 0 ? *compute : *communicate;
        const absl::Status status =
            i % 4 < 2 ? (*ranks)->AllReduce(data + i, 1, DType::kF32,
                                            ReduceOp::kSum, 1, stream)
                      : (*ranks)->Broadcast(data + i, 4, 1, stream);
        ASSERT_TRUE(status.ok()) << status;
      }
      ASSERT_TRUE(communicate->Synchronize().ok());
      ASSERT_TRUE(compute->Copy(host.data(), data, 32).ok());
      EXPECT_EQ(host, std::vector<float>({10, 12, 12, 13, 18, 20, 16, 17}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StagedCommunicator, CannotBeCaptured) {
  const auto device = Deferred(0);
  auto staged = MakeStagedCommunicator(MakeSingleCommunicator(), device.get());
  ASSERT_TRUE(staged.ok());
  EXPECT_FALSE((*staged)->enqueues());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
