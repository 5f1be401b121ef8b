// The conformance tests over NCCL: on as many GPUs as the machine has, a rank
// each.
#include <thread>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/communicator_conformance.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/on_device.h"
#include "runtime/collective/staged_communicator.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/device/cuda/tested_gpu.h"

namespace halftone {
namespace runtime {
namespace {

absl::StatusOr<std::unique_ptr<Communicator>> ConnectGpu(
    std::unique_ptr<Communicator> host, absl::Duration timeout) {
  auto device = TestedGpu(host->rank());
  HT_ASSIGN_OR_RETURN(auto nccl, ConnectNccl(std::move(host), device.get(),
                                             absl::Seconds(60), timeout));
  return MakeOnDevice(std::move(device), std::move(nccl));
}

std::vector<std::unique_ptr<Communicator>> ConnectGpus(int world_size,
                                                       absl::Duration timeout) {
  auto hosts = MakeInProcessCommunicators(world_size, timeout);
  std::vector<std::unique_ptr<Communicator>> ranks(world_size);
  std::vector<std::thread> threads;
  for (int r = 0; r < world_size; ++r) {
    threads.emplace_back([&, r] {
      auto connected = ConnectGpu(std::move(hosts[r]), timeout);
      ASSERT_TRUE(connected.ok()) << connected.status();
      ranks[r] = *std::move(connected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

// Two ranks on the first GPU, by way of the host.
std::vector<std::unique_ptr<Communicator>> ShareGpu(int world_size,
                                                    absl::Duration timeout) {
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (auto& host : MakeInProcessCommunicators(world_size, timeout)) {
    auto device = TestedGpu();
    auto staged = MakeStagedCommunicator(std::move(host), device.get());
    EXPECT_TRUE(staged.ok()) << staged.status();
    ranks.push_back(MakeOnDevice(std::move(device), *std::move(staged)));
  }
  return ranks;
}

std::vector<CommunicatorCase> Cases() {
  const int gpus = CountCudaDevices().value_or(1);
  std::vector<CommunicatorCase> cases = {{"on_one", 2, ShareGpu}};
  for (int ranks = 1; ranks <= gpus; ranks *= 2) {
    CommunicatorCase one{absl::StrCat("of_", ranks), ranks, ConnectGpus};
    one.rank_order = ranks <= 2;  // NCCL's rings begin anywhere
    one.compares_calls = false;
    cases.push_back(one);
  }
  if (gpus >= 4) {
    CommunicatorCase by_nodes = cases.back();
    by_nodes.ranks_per_node = 2;
    absl::StrAppend(&by_nodes.name, "_in_nodes_of_2");
    cases.push_back(by_nodes);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Nccl, CommunicatorConformance,
                         ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace runtime
}  // namespace halftone
