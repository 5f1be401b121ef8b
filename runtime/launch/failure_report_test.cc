#include "runtime/launch/failure_report.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

class FailureFile : public ::testing::Test {
 protected:
  FailureFile() {
    path_ = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  bool Write(int rank, int attempt, MonotonicTime started) {
    FailureReport report;
    report.rank = rank;
    report.attempt = attempt;
    const absl::StatusOr<bool> written =
        WriteFailureFile(path_, report, started);
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() && *written;
  }
  int Rank() const {
    std::ifstream in(path_);
    return nlohmann::json::parse(in)["rank"];
  }

  std::string path_;
  const MonotonicTime now_ = MonotonicTime::Now();
};

// In whichever order two nodes write to the folder that they share.
TEST_F(FailureFile, IsOfTheNodeWhoseRankFailed) {
  EXPECT_TRUE(Write(3, 0, now_));
  EXPECT_FALSE(Write(-1, 0, now_));
  EXPECT_EQ(Rank(), 3);
  EXPECT_TRUE(Write(2, 0, now_));
  EXPECT_EQ(Rank(), 2);
}

TEST_F(FailureFile, OfAnEarlierFailureIsReplaced) {
  EXPECT_TRUE(Write(3, 0, now_));
  EXPECT_TRUE(Write(-1, 1, now_)) << "another attempt";
  EXPECT_EQ(Rank(), -1);
  EXPECT_TRUE(Write(3, 0, now_));
  EXPECT_TRUE(Write(-1, 0, now_ + absl::Hours(1))) << "another run";
  EXPECT_EQ(Rank(), -1);
}

TEST(WhoFailed, IsARankHereOrOnItsNode) {
  FailureReport report;
  EXPECT_EQ(WhoFailed(report, 2), "a rank of another node");
  report.elsewhere = {3};
  EXPECT_EQ(WhoFailed(report, 2), "rank 3 on node 1");
  report.elsewhere = {2, 3, 4};
  EXPECT_EQ(WhoFailed(report, 2), "ranks 2 3 4 on nodes 1 2");
  report.rank = 1;
  EXPECT_EQ(WhoFailed(report, 2), "rank 1");
}

TEST(SourceOfError, IsTheRankThatTheErrorNames) {
  EXPECT_EQ(SourceOfError({"step 1", "error    rank 12: no checkpoint: x"}),
            12);
  EXPECT_EQ(SourceOfError({"error    no checkpoint: rank 1: x"}), std::nullopt);
  EXPECT_EQ(SourceOfError({"error    rank 1 differs: x"}), std::nullopt);
  EXPECT_EQ(SourceOfError({}), std::nullopt);
}

TEST(FailureText, NamesARankOfAnotherNode) {
  FailureReport report;
  report.elsewhere = {3};
  report.cause = "rank 0 here: exit code 7";
  EXPECT_THAT(ToLines(report)[0],
              HasSubstr("rank 3 failed on another node: rank 0 here: "));
  report.elsewhere = {2, 3};
  EXPECT_THAT(ToLines(report)[0], HasSubstr("the run failed on another node"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
