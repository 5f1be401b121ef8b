// What becomes of errors and of waits for a device that is never done.
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/nccl_fake.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

TEST_F(NcclTest, AnErrorOfACallIsTheEnd) {
  ConnectAll();
  behaviour().enqueue = ncclRemoteError;
  char data[64];
  const absl::Status status =
      ranks_[0]->AllReduce(data, 10, DType::kF16, ReduceOp::kSum, 1, *stream_);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("ncclAllReduce for all_reduce (sum "
                                            "of 10 f16) on rank 0 of 2"),
                                  HasSubstr("remote process")));
  EXPECT_THAT(comm(0).log, IsSupersetOf({"abort"}));
  // Every later call fails alike, and the peer's next one as well.
  EXPECT_EQ(ranks_[0]->Barrier(), status);
  EXPECT_EQ(ranks_[0]->AllGather("x").status(), status);
  EXPECT_EQ(ranks_[0]->Broadcast(data, 1, 0, *stream_), status);
  EXPECT_THAT(Text(ranks_[1]->Barrier()), HasSubstr("rank 0"));
  EXPECT_THAT(comm(1).log, ElementsAre("abort"));
}

// NCCL reports a lost peer while a kernel of it hangs on the device.
TEST_F(NcclTest, AnAsynchronousErrorEndsAWait) {
  ConnectAll();
  comm(0).error = ncclRemoteError;
  const absl::Status status = WaitForever(0);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("rank 0 of 2"), HasSubstr("remote process")));
  EXPECT_THAT(comm(0).log, ElementsAre("abort"));
  EXPECT_THAT(Text(WaitForever(1)), HasSubstr("rank 0"));
}

TEST_F(NcclTest, AWaitEndsWhenThePeerAborts) {
  ConnectAll();
  ForEachRank([&](int rank) {
    if (rank == 1) {
      absl::SleepFor(absl::Milliseconds(100));
      ranks_[1]->Abort(OutOfMemoryError("conv1 needs 3 GiB"));
      EXPECT_EQ(ExitCodeOf(ranks_[1]->Barrier()), ExitCode::kCommunication);
      return;
    }
    const absl::Status status = WaitForever(0);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status),
                AllOf(HasSubstr("rank 1"), HasSubstr("conv1 needs 3 GiB")));
  });
  for (int r = 0; r < 2; ++r) EXPECT_THAT(comm(r).log, ElementsAre("abort"));
}

TEST_F(NcclTest, AWaitNamesThePeerThatIsLate) {
  world_size_ = 3;
  limits_.collective = absl::Milliseconds(300);
  ConnectAll();
  ForEachRank([&](int rank) {
    if (rank == 1) return;  // busy with something else
    const absl::Status status = WaitForever(rank);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status), AllOf(HasSubstr("a step on the device"),
                                    HasSubstr("rank 1 did not arrive")));
    EXPECT_THAT(comm(rank).log, ElementsAre("abort"));
  });
}

TEST_F(NcclTest, ALongWaitThatEndsIsNoError) {
  ConnectAll();
  int asked = 0;
  EXPECT_TRUE(
      guards_[0]([&] { return absl::StatusOr<bool>(++asked == 20); }).ok());
  EXPECT_TRUE(comm(0).log.empty());
}

TEST_F(NcclTest, TheDevicesOwnErrorKeepsItsClass) {
  ConnectAll();
  const absl::Status status = guards_[0]([]() -> absl::StatusOr<bool> {
    return DeviceError("cuda:0: an illegal address");
  });
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice);
  EXPECT_THAT(comm(0).log, ElementsAre("abort"));
  const absl::Status peers = WaitForever(1);
  EXPECT_EQ(ExitCodeOf(peers), ExitCode::kCommunication);
  EXPECT_THAT(Text(peers), HasSubstr("an illegal address"));
}

// The real abort would wait for them for ever.
TEST_F(NcclTest, GraphsAreDroppedBeforeAnAbort) {
  ConnectAll();
  ForEachRank([&](int rank) {
    ranks_[rank]->OnAbort([rank] {
      comm(rank).log.push_back("drop");
      return true;
    });
  });
  ranks_[0]->Abort(DeviceError("lost"));
  EXPECT_THAT(comm(0).log, ElementsAre("drop", "abort"));
  EXPECT_FALSE(ranks_[1]->Barrier().ok());
  EXPECT_THAT(comm(1).log, ElementsAre("drop", "abort"));
  ranks_[0]->Abort(DeviceError("lost"));  // there is nothing left to abort
  EXPECT_EQ(comm(0).log.size(), 2u);
}

TEST_F(NcclTest, AnAbortWaitsForTheEndOfACapture) {
  ConnectAll();
  bool capturing = true;
  ranks_[0]->OnAbort([&capturing] { return !capturing; });
  comm(0).error = ncclRemoteError;
  const absl::Status status = WaitForever(0);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_TRUE(comm(0).log.empty());
  // The peers know already, and this rank calls nothing of NCCL any more.
  EXPECT_THAT(Text(ranks_[1]->Barrier()), HasSubstr("rank 0"));
  char data[64];
  EXPECT_EQ(
      ranks_[0]->AllReduce(data, 1, DType::kF32, ReduceOp::kSum, 1, *stream_),
      status);
  EXPECT_TRUE(comm(0).log.empty());
  capturing = false;
  ranks_[0]->Abort(status);
  EXPECT_THAT(comm(0).log, ElementsAre("abort"));
  EXPECT_EQ(ranks_[0]->Barrier(), status);
}

// Whoever captured is gone without a word.
TEST_F(NcclTest, AFailedCommunicatorEndsWithAnAbort) {
  ConnectAll();
  ranks_[0]->OnAbort([] { return false; });
  comm(0).error = ncclRemoteError;
  EXPECT_FALSE(WaitForever(0).ok());
  EXPECT_TRUE(comm(0).log.empty());
  ranks_[0]->OnAbort(nullptr);
  ranks_[0].reset();
  EXPECT_THAT(comm(0).log, ElementsAre("abort"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
