#include "runtime/train/peers.h"

#include <thread>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

std::vector<absl::StatusOr<std::vector<std::string>>> AgreeAll(
    const std::vector<absl::Status>& mine) {
  const int n = static_cast<int>(mine.size());
  auto ranks = MakeInProcessCommunicators(n, absl::Seconds(60));
  std::vector<absl::StatusOr<std::vector<std::string>>> results(
      n, std::vector<std::string>());
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      results[r] = Agree(*ranks[r], mine[r], std::string(r, 'x'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(AgreeTest, AllWell) {
  const auto results = AgreeAll({absl::OkStatus(), absl::OkStatus()});
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*result, (std::vector<std::string>{"", "x"}));
  }
}

TEST(AgreeTest, OneFailureFailsAllWithItsClass) {
  const auto results = AgreeAll(
      {absl::OkStatus(), OutOfMemoryError("too big"), absl::OkStatus()});
  EXPECT_EQ(results[1].status().message(), "too big");
  for (const int r : {0, 2}) {
    EXPECT_EQ(results[r].status().message(), "rank 1: too big");
    EXPECT_EQ(ExitCodeOf(results[r].status()), ExitCode::kOutOfMemory);
  }
}

TEST(CulpritTest, AConsequenceIsNotTheCause) {
  const absl::Status gone = CommunicationError("peer gone");
  const absl::Status bad = ModelError("label 12");
  EXPECT_TRUE(Culprit({absl::OkStatus()}).ok());
  EXPECT_EQ(Culprit({gone, absl::OkStatus(), bad}), bad);
  EXPECT_EQ(Culprit({absl::OkStatus(), gone}), gone);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
