// Steps on a GPU: graphs, single steps, and ranks that share it.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "kernels/cuda/register_all.h"
#include "runtime/collective/staged_communicator.h"
#include "runtime/device/cuda/tested_gpu.h"
#include "runtime/exec/executor_testing.h"

namespace halftone {
namespace runtime {
namespace {

const kernels::KernelRegistry& CudaKernels() {
  static const auto* const registry = [] {
    auto* kernels = new kernels::KernelRegistry;
    kernels::RegisterCudaKernels(*kernels);
    return kernels;
  }();
  return *registry;
}

TEST(ExecutorGpu, GraphsAndSingleStepsGiveTheSameBits) {
  const auto program = ParseProgram();
  std::string traces[2];
  for (const bool use_graphs : {true, false}) {
    ExecutorOptions options;
    options.use_graphs = use_graphs;
    TestRank rank(program.get(), options, TestedGpu(), MakeSingleCommunicator(),
                  CudaKernels());
    ASSERT_TRUE(rank.status.ok()) << rank.status;
    traces[use_graphs] = TrainAndTrace(rank);
  }
  EXPECT_EQ(traces[0], traces[1]);
  EXPECT_EQ(traces[0].find("nan"), std::string::npos);
}

TEST(ExecutorGpu, RanksThatShareItGetTheSameState) {
  const auto program = ParseProgram();
  auto hosts = MakeInProcessCommunicators(2, absl::Seconds(60));
  std::string traces[2];
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      auto device = TestedGpu();
      auto staged = MakeStagedCommunicator(std::move(hosts[r]), device.get());
      ASSERT_TRUE(staged.ok()) << staged.status();
      TestRank rank(program.get(), {}, std::move(device), *std::move(staged),
                    CudaKernels());
      ASSERT_TRUE(rank.status.ok()) << rank.status;
      traces[r] = TrainAndTrace(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(traces[0], traces[1]);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
