// Ranks as threads, with a limit that one of them exceeds by far.
#include "runtime/train/long_work.h"

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

constexpr absl::Duration kLimit = absl::Milliseconds(400);
constexpr int kRanks = 3;

// What `call` returns on each rank.
std::vector<absl::Status> OnAll(
    const std::function<absl::Status(Communicator&)>& call) {
  auto group = MakeInProcessCommunicators(kRanks, kLimit);
  std::vector<absl::Status> statuses(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = call(*group[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

absl::Status Slow() {
  absl::SleepFor(4 * kLimit);
  return absl::OkStatus();
}

TEST(DoLongWork, MayTakeLongerThanACollective) {
  int done = 0;
  const auto statuses = OnAll([&](Communicator& communicator) {
    const auto work = [&] {
      ++done;
      return Slow();
    };
    HT_RETURN_IF_ERROR(communicator.rank() == 1
                           ? DoLongWork(communicator, work)
                           : DoLongWork(communicator, nullptr));
    // All come back together.
    return communicator.Barrier();
  });
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(done, 1);
}

// So that the limit above is one.
TEST(DoLongWork, WithoutItTheRankIsLate) {
  const auto statuses = OnAll([&](Communicator& communicator) {
    if (communicator.rank() == 1) HT_RETURN_IF_ERROR(Slow());
    return communicator.Barrier();
  });
  EXPECT_EQ(ExitCodeOf(statuses[0]), ExitCode::kCommunication);
}

TEST(DoLongWork, AnErrorIsTheRanksOwn) {
  const auto statuses = OnAll([&](Communicator& communicator) {
    return DoLongWork(communicator, [&]() -> absl::Status {
      if (communicator.rank() == 2) return CheckpointError("disk");
      return absl::OkStatus();
    });
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
  EXPECT_EQ(ExitCodeOf(statuses[2]), ExitCode::kCheckpoint);
}

TEST(DoLongWork, ARankThatDoesNotComeIsLate) {
  const auto statuses = OnAll([&](Communicator& communicator) {
    if (communicator.rank() == 0) return Slow();
    return DoLongWork(communicator, nullptr);
  });
  EXPECT_EQ(ExitCodeOf(statuses[1]), ExitCode::kCommunication);
}

TEST(DoLongWork, OneRankAloneJustWorks) {
  auto group = MakeInProcessCommunicators(1, kLimit);
  EXPECT_TRUE(DoLongWork(*group[0], nullptr).ok());
  EXPECT_EQ(DoLongWork(*group[0], [] { return ModelError("x"); }).message(),
            "x");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
