// Graphs that hold collectives, and how they end: the executor on a fake
// device with a table that plays NCCL.
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/nccl_fake.h"
#include "runtime/exec/executor_testing.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExecutorNcclTest : public NcclTest {
 protected:
  // Two ranks with a state. Their first steps have run.
  void MakeRanks() {
    ConnectAll();
    ForEachRank([this](int rank) {
      auto owned = MakeFakeDevice({});
      devices_[rank] = owned.get();
      own_[rank] = std::make_unique<TestRank>(
          program_.get(), ExecutorOptions(), std::move(owned),
          std::move(ranks_[rank]), FakeKernels());
      ASSERT_TRUE(own_[rank]->status.ok()) << own_[rank]->status;
      Executor& executor = *own_[rank]->executor;
      ASSERT_TRUE(executor.Prepare("train", Samples(1)).ok());
      ASSERT_TRUE(executor.Initialize(7).ok());
      EXPECT_TRUE(Step(rank).ok());
      comm(rank).log.clear();
    });
  }
  absl::Status Step(int rank) {
    return own_[rank]->executor->Execute(0, {Feed(x_)}).status();
  }
  void TearDown() override {
    ForEachRank([this](int rank) { own_[rank].reset(); });
  }

  const std::vector<float> x_ = {1, 2};
  std::unique_ptr<Program> program_ = ParseProgram();
  FakeDevice* devices_[2] = {};
  std::unique_ptr<TestRank> own_[2];
};

TEST_F(ExecutorNcclTest, CollectivesAreEnqueuedOnceAndReplayed) {
  MakeRanks();
  ForEachRank([this](int rank) {
    for (int step = 0; step < 4; ++step) EXPECT_TRUE(Step(rank).ok());
    EXPECT_EQ(comm(rank).log.size(), 1u);  // while capturing
    EXPECT_EQ(devices_[rank]->live_graphs(), 1);
    EXPECT_GT(comm(rank).held.use_count(), 1);
  });
}

// A collective is captured by all ranks or by none.
TEST_F(ExecutorNcclTest, WhatRanksRunInDifferentStepsHasNoGraph) {
  MakeRanks();
  ForEachRank([this](int rank) {
    own_[rank]->executor->CaptureNoCollectives(0);
    for (int step = 0; step < 3; ++step) EXPECT_TRUE(Step(rank).ok());
    EXPECT_EQ(comm(rank).log.size(), 3u);
    EXPECT_EQ(devices_[rank]->live_graphs(), 0);
  });
}

// The fake NCCL fails the test if a graph holds a collective at its abort.
TEST_F(ExecutorNcclTest, AnAbortFindsNoGraphs) {
  MakeRanks();
  ForEachRank([this](int rank) { EXPECT_TRUE(Step(rank).ok()); });
  own_[0]->communicator->Abort(DeviceError("lost"));
  EXPECT_EQ(devices_[0]->live_graphs(), 0);
  EXPECT_EQ(comm(0).log.back(), "abort");
  EXPECT_FALSE(own_[1]->communicator->Barrier().ok());
  EXPECT_EQ(devices_[1]->live_graphs(), 0);
  EXPECT_EQ(comm(1).log.back(), "abort");
}

TEST_F(ExecutorNcclTest, ACollectiveThatFailsWhileCapturingAbortsAfterIt) {
  MakeRanks();
  behaviour().enqueue = ncclRemoteError;
  const absl::Status status = Step(0);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("sum: ncclAllReduce for all_reduce"));
  EXPECT_THAT(comm(0).log, ElementsAre(HasSubstr("all_reduce"), "abort"));
  EXPECT_EQ(devices_[0]->live_graphs(), 0);
  // Streams are out of the capture.
  std::string bytes;
  EXPECT_TRUE(own_[0]->executor->ReadCell(CellId(kW), &bytes).ok());
  // The peer, whose NCCL takes its collectives, hears of it when it next waits.
  behaviour().enqueue = ncclInProgress;
  EXPECT_TRUE(Step(1).ok());
  EXPECT_THAT(std::string(own_[1]->communicator->Barrier().message()),
              HasSubstr("rank 0"));
  EXPECT_EQ(devices_[1]->live_graphs(), 0);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
