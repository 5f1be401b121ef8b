// The launcher and the ranks' communicators together: who is to blame when the
// ranks talk to each other.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/launch/launcher.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class CommunicatorLaunch : public ::testing::Test {
 protected:
  CommunicatorLaunch()
      : dir_(absl::StrCat(
            ::testing::TempDir(), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    mkdir(dir_.c_str(), 0700);
  }

  // Launches communicator_rank; rank `odd` gets `misbehaviour` too. A shell is
  // between, so that the rank is not the launcher's own child.
  int Run(LaunchOptions options, const std::string& folder, int odd,
          const std::string& calls, const std::string& misbehaviour) {
    options.log_dir = dir_ + folder;
    mkdir(options.log_dir.c_str(), 0700);
    options.out_fd = open("/dev/null", O_WRONLY);
    options.err_fd = open((options.log_dir + "/console").c_str(),
                          O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const std::string rank =
        absl::StrCat("tests/multi_rank/communicator_rank ", calls, " 100000 ");
    options.command = {
        "sh", "-c",
        absl::StrCat("if [ $HALFTONE_RANK = ", odd, " ]; then ", rank,
                     misbehaviour, "; else ", rank, "; fi; exit $?")};
    const absl::Time start = absl::Now();
    auto code = Launch(options);
    elapsed_ = absl::Now() - start;
    close(options.out_fd);
    close(options.err_fd);
    EXPECT_TRUE(code.ok()) << code.status();
    return code.ok() ? *code : -1;
  }
  int RunThree(const std::string& calls, const std::string& misbehaviour) {
    LaunchOptions options;
    options.ranks = "3";
    return Run(options, "", 1, calls, misbehaviour);
  }
  // Two nodes of two ranks on this machine, node 1 in a process of its own;
  // the exit codes of the launchers.
  std::pair<int, int> RunTwoNodes(const std::string& calls,
                                  const std::string& misbehaviour) {
    LaunchOptions options;
    options.ranks = "2";
    options.nnodes = 2;
    options.master = ToString(Listen("127.0.0.1", 0)->local());
    setenv("HALFTONE_TOKEN", "of the test", 1);
    const pid_t other = fork();
    options.node_rank = other == 0 ? 1 : 0;
    const int code = Run(options, absl::StrCat("/node-", options.node_rank), 3,
                         calls, misbehaviour);
    if (other == 0) _exit(code);
    unsetenv("HALFTONE_TOKEN");
    int status = 0;
    waitpid(other, &status, 0);
    return {code, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  }
  std::string Console(const std::string& folder = "") const {
    return ReadAll(absl::StrCat(dir_, folder, "/console"));
  }
  std::string Log(int rank, const std::string& folder = "") const {
    return ReadAll(
        absl::StrCat(dir_, folder, "/attempt-0/rank-", rank, ".out"));
  }
  nlohmann::json Failure() const {
    return nlohmann::json::parse(ReadAll(dir_ + "/failure.json"));
  }

  std::string dir_;
  absl::Duration elapsed_;
};

TEST_F(CommunicatorLaunch, RanksMeetAndAgree) {
  EXPECT_EQ(RunThree("5", ""), 0) << Console();
  EXPECT_EQ(Log(0).size(), 17u) << Log(0);
  EXPECT_EQ(Log(1), Log(0));
  EXPECT_EQ(Log(2), Log(0));
}

TEST_F(CommunicatorLaunch, AKilledRankIsTheCulprit) {
  EXPECT_EQ(RunThree("1000000", "kill=20"), 137);
  EXPECT_LT(elapsed_, absl::Seconds(10));
  EXPECT_EQ(Failure()["rank"], 1);
  EXPECT_THAT(Console(), HasSubstr("error    rank 1 failed: pid "));
  EXPECT_THAT(Console(), HasSubstr("the ranks say: rank 1 (pid "));
}

TEST_F(CommunicatorLaunch, AStoppedRankIsTheCulprit) {
  EXPECT_EQ(RunThree("1000000", "stop=20"), 7);
  EXPECT_EQ(Failure()["rank"], 1);
  EXPECT_THAT(Console(), HasSubstr("it hung: the others waited"));
  EXPECT_THAT(Console(), HasSubstr("does not answer"));
}

// Not whoever waited for it and gave up first.
TEST_F(CommunicatorLaunch, ARankThatNeverArrivesIsTheCulprit) {
  setenv("TEST_CONNECT_SECONDS", "2", 1);
  EXPECT_EQ(RunThree("5", "hang=0"), 7);
  unsetenv("TEST_CONNECT_SECONDS");
  EXPECT_EQ(Failure()["rank"], 1);
  EXPECT_THAT(Console(), HasSubstr("error    rank 1 failed: pid "));
  EXPECT_THAT(Console(), HasSubstr("it hung: the others waited"));
  EXPECT_THAT(Console(), HasSubstr("rank 1 of 3 did not arrive at "));
}

TEST_F(CommunicatorLaunch, TwoNodesMeetAndAgree) {
  EXPECT_EQ(RunTwoNodes("5", ""), std::make_pair(0, 0))
      << Console("/node-0") << Console("/node-1");
  EXPECT_EQ(Log(0, "/node-0").size(), 17u);
  EXPECT_EQ(Log(3, "/node-1"), Log(0, "/node-0"));
  EXPECT_THAT(Console("/node-0"), HasSubstr("launch   on the other nodes:"));
  EXPECT_THAT(Console("/node-0"),
              HasSubstr("halftone launch --nnodes 2 --node-rank 1 --master "));
  EXPECT_THAT(Console("/node-0"), Not(HasSubstr("of the test")));
}

TEST_F(CommunicatorLaunch, ARankOfAnotherNodeIsNamed) {
  EXPECT_EQ(RunTwoNodes("1000000", "kill=20"), std::make_pair(7, 137));
  EXPECT_THAT(Console("/node-0"), HasSubstr("failed on another node"));
  EXPECT_THAT(Console("/node-0"), HasSubstr("the ranks say: rank 3 (pid "));
  EXPECT_THAT(Console("/node-1"), HasSubstr("error    rank 3 failed"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
