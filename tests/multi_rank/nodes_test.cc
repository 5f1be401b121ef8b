// `launch --nnodes 2`: each node a network namespace of this machine, joined
// by a cable of the kernel's, and again without, over the loopback. Where
// namespaces are not permitted their cases are skipped and say so.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/rendezvous/socket.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"
#include "tests/support/two_nodes.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr char kHalftone[] = "tools/halftone";
constexpr int kRanks = 2;  // on each node

// Rank R's process, whose command has `mark`; 0: there is none.
pid_t RankOf(const std::string& mark, int rank) {
  const std::string variable = absl::StrCat("HALFTONE_RANK=", rank);
  for (const pid_t pid : ProcessesOf(mark)) {
    const std::string env = ReadAll(absl::StrCat("/proc/", pid, "/environ"));
    for (const auto entry : absl::StrSplit(env, '\0')) {
      if (entry == variable) return pid;
    }
  }
  return 0;
}

// The result, or a failed test if it does not end within `limit`.
Result WaitAtMost(const Child& child, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  siginfo_t info = {};
  while (info.si_pid == 0) {
    waitid(P_PID, child.pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid == 0 && absl::Now() > end) {
      ADD_FAILURE() << "still there after " << limit << ": "
                    << ReadAll(child.err);
      Signal(child.pid, SIGKILL);
      break;
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return Wait(child);
}

enum class Net { kNamespaces, kLoopback };

class NodesTest : public ::testing::TestWithParam<Net> {
 protected:
  void SetUp() override {
    if (GetParam() == Net::kLoopback) {
      master_ = runtime::ToString(runtime::Listen("127.0.0.1", 0)->local());
      return;
    }
    const std::string trouble = nodes_.Make();
    if (!trouble.empty()) {
      GTEST_SKIP() << "no network namespaces here: " << trouble;
    }
    master_ = nodes_.AddressOf(0) + ":29500";
  }
  void TearDown() override {
    for (const pid_t pid : ProcessesOf(mark_)) {
      ADD_FAILURE() << "left behind: "
                    << ReadAll(absl::StrCat("/proc/", pid, "/cmdline"));
      Signal(pid, SIGKILL);
    }
  }
  void Launch(const Words& command, const Words& flags = {}) {
    for (int node = 0; node < 2; ++node) {
      Words words = {kHalftone,     "launch",
                     "--nnodes",    "2",
                     "--node-rank", absl::StrCat(node),
                     "--ranks",     absl::StrCat(ranks_),
                     "--master",    master_};
      words.insert(words.end(), flags.begin(), flags.end());
      words.insert(words.end(), command.begin(), command.end());
      if (GetParam() == Net::kNamespaces) words = nodes_.On(node, words);
      std::map<std::string, std::string> env = OwnVariables();
      env["HALFTONE_TOKEN"] = "of the test";
      env["OMP_NUM_THREADS"] = "1";
      launchers_.push_back(Start(absl::StrCat("node-", node), words, env));
    }
  }
  // A training that goes on until something happens, unless told otherwise.
  Words Train(const Words& more = {"--epochs", "5000"}) {
    mark_ = NewPath("run");
    Words words = {"run",
                   "models/mnist_convnet.pbtxt",
                   "--strategy",
                   "models/mnist_o1.pbtxt",
                   "--data",
                   "idx:models/digits",
                   "--out",
                   mark_,
                   "--log-every",
                   "1",
                   "--eval-every",
                   "10000e",
                   "--checkpoint-every",
                   "20",
                   "--timeout",
                   "3"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // What as many ranks on one machine log.
  std::vector<json> OfOneMachine(const Words& more) {
    Words alone = {kHalftone, "launch", "--ranks", absl::StrCat(2 * kRanks)};
    for (const std::string& word : Train(more)) alone.push_back(word);
    std::map<std::string, std::string> env = OwnVariables();
    env["OMP_NUM_THREADS"] = "1";
    const Result one = Wait(Start("alone", alone, env));
    EXPECT_EQ(one.exit_code(), 0) << one.err;
    return Metrics(mark_);
  }
  void AwaitSteps(size_t steps) {
    for (int i = 0; i < 6000 && Metrics(mark_).size() < steps; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    ASSERT_GE(Metrics(mark_).size(), steps)
        << ReadAll(launchers_[0].err) << ReadAll(launchers_[1].err);
    since_ = absl::Now();
  }
  // Both launchers' results; what fails must have ended within `limit`.
  void AwaitBoth(absl::Duration limit) {
    for (const Child& launcher : launchers_) {
      results_.push_back(WaitAtMost(launcher, limit - (absl::Now() - since_)));
    }
  }
  std::string Say(int node) const {
    return absl::StrCat("node ", node, " said: ", results_[node].err);
  }
  json Failure() const { return json::parse(ReadAll(mark_ + "/failure.json")); }

  TwoNodes nodes_;
  int ranks_ = kRanks;
  std::string master_;
  std::string mark_ = "of no process";
  std::vector<Child> launchers_;
  std::vector<Result> results_;
  absl::Time since_ = absl::Now();
};

// Ample for a loaded machine; the promise is two seconds.
constexpr absl::Duration kEnd = absl::Seconds(10);

TEST_P(NodesTest, TrainAsOneMachineDoes) {
  Launch(Train({"--epochs", "1"}));
  AwaitBoth(absl::Minutes(3));
  ASSERT_EQ(results_[0].exit_code(), 0) << Say(0);
  ASSERT_EQ(results_[1].exit_code(), 0) << Say(1);
  const std::vector<json> found = Metrics(mark_);
  EXPECT_EQ(found, OfOneMachine({"--epochs", "1"}));
}

// Nodes that are found, or, where both are this machine, told: the bits of as
// many ranks of one machine in as large groups.
TEST_P(NodesTest, AddInsideEachAndThenBetween) {
  const Words by_nodes = {"--epochs", "1", "--set",
                          "dist.use_hierarchical_allreduce=true"};
  Words told = by_nodes;
  told.insert(told.end(),
              {"--set", absl::StrCat("dist.hierarchical_allreduce_inter_"
                                     "nranks=",
                                     kRanks)});
  Launch(Train(GetParam() == Net::kNamespaces ? by_nodes : told));
  AwaitBoth(absl::Minutes(3));
  ASSERT_EQ(results_[0].exit_code(), 0) << Say(0);
  ASSERT_EQ(results_[1].exit_code(), 0) << Say(1);
  EXPECT_THAT(results_[0].out + results_[0].err,
              HasSubstr("all-reduce inside each node, then between them: 2 "
                        "nodes of 2 ranks"));
  const std::vector<json> found = Metrics(mark_);
  EXPECT_EQ(found, OfOneMachine(told));
  EXPECT_NE(found, OfOneMachine({"--epochs", "1"}));
}

// Whose rank is killed says 137, the other 7; both name it.
void ExpectKilled(const std::vector<Result>& results, const json& failure,
                  int node, int rank) {
  const Result& here = results[node];
  const Result& there = results[1 - node];
  EXPECT_EQ(here.exit_code(), 128 + SIGKILL) << here.err;
  EXPECT_EQ(there.exit_code(), 7) << there.err;
  EXPECT_THAT(here.err,
              HasSubstr(absl::StrCat("error    rank ", rank, " failed: pid ")));
  EXPECT_THAT(here.err, HasSubstr("signal 9 (SIGKILL)"));
  EXPECT_THAT(there.err, HasSubstr(absl::StrCat("error    rank ", rank,
                                                " failed on another node")));
  EXPECT_THAT(there.err,
              HasSubstr(absl::StrCat("the ranks say: rank ", rank, " (pid ")));
  EXPECT_EQ(failure["rank"], rank);
  EXPECT_EQ(failure["signal"], SIGKILL);
}

TEST_P(NodesTest, AKilledRankIsNamedOnBoth) {
  for (const int rank : {0, 1, 2, 3}) {
    launchers_.clear();
    results_.clear();
    if (GetParam() == Net::kLoopback && rank % 2 == 0) continue;
    Launch(Train());
    AwaitSteps(3);
    ASSERT_GT(RankOf(mark_, rank), 0);
    Signal(RankOf(mark_, rank), SIGKILL);
    AwaitBoth(kEnd);
    ExpectKilled(results_, Failure(), rank / kRanks, rank);
  }
}

// The only rank of its node: nobody there notices.
TEST_P(NodesTest, AStoppedRankEndsBoth) {
  ranks_ = 1;
  for (const int rank : {0, 1}) {
    launchers_.clear();
    results_.clear();
    Launch(Train());
    AwaitSteps(3);
    ASSERT_GT(RankOf(mark_, rank), 0);
    Signal(RankOf(mark_, rank), SIGSTOP);
    AwaitBoth(kEnd + absl::Seconds(3));
    const Result& here = results_[rank];
    const Result& there = results_[1 - rank];
    EXPECT_EQ(here.exit_code(), 7) << here.err;
    EXPECT_EQ(there.exit_code(), 7) << there.err;
    EXPECT_THAT(here.err, HasSubstr(absl::StrCat("error    rank ", rank,
                                                 " failed: pid ")));
    EXPECT_THAT(here.err, HasSubstr("it hung: the others waited"));
    EXPECT_THAT(there.err, HasSubstr(absl::StrCat("error    rank ", rank,
                                                  " failed on another node")));
    EXPECT_EQ(Failure()["rank"], rank);
  }
}

// Nothing comes from the other node, not even that it is gone: the limit of
// collectives counts, not the patience with a rendezvous that may be slow.
TEST_P(NodesTest, ACutCableEndsBoth) {
  if (GetParam() == Net::kLoopback) GTEST_SKIP() << "it has no cable";
  Launch(Train());
  AwaitSteps(3);
  nodes_.CutCable();
  AwaitBoth(kEnd + absl::Seconds(3));
  EXPECT_EQ(results_[0].exit_code(), 7) << Say(0);
  EXPECT_EQ(results_[1].exit_code(), 7) << Say(1);
  EXPECT_THAT(results_[0].err, HasSubstr("network"));
  EXPECT_THAT(results_[1].err, HasSubstr("network"));
}

TEST_P(NodesTest, AKilledLauncherTakesItsRanksAlongAndEndsTheOther) {
  for (const int node : {0, 1}) {
    launchers_.clear();
    results_.clear();
    Launch(Train());
    AwaitSteps(3);
    Signal(launchers_[node].pid, SIGKILL);
    AwaitBoth(kEnd);
    EXPECT_EQ(results_[node].exit_code(), 128 + SIGKILL);
    EXPECT_EQ(results_[1 - node].exit_code(), 7) << Say(1 - node);
    EXPECT_THAT(results_[1 - node].err, HasSubstr("on another node"));
    for (int i = 0; i < 300 && !ProcessesOf(mark_).empty(); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
}

TEST_P(NodesTest, BothStartAgainFromTheCheckpoint) {
  Launch(Train({"--epochs", "4"}), {"--max-restarts", "1"});
  AwaitSteps(30);
  Signal(RankOf(mark_, 3), SIGKILL);
  AwaitBoth(absl::Minutes(3));
  ASSERT_EQ(results_[0].exit_code(), 0) << Say(0);
  ASSERT_EQ(results_[1].exit_code(), 0) << Say(1);
  EXPECT_THAT(results_[0].err, HasSubstr("restart 1 of 1 from the checkpoint"));
  EXPECT_THAT(results_[1].err, HasSubstr("restart 1 of 1 from the "));
  const std::vector<json> found = Metrics(mark_);
  launchers_.clear();
  results_.clear();
  Launch(Train({"--epochs", "4"}));
  AwaitBoth(absl::Minutes(3));
  ASSERT_EQ(results_[0].exit_code(), 0) << Say(0);
  EXPECT_EQ(found, Metrics(mark_));
}

TEST_P(NodesTest, SigtermAtOneSavesAndEndsBoth) {
  Launch(Train(), {"--max-restarts", "2"});
  AwaitSteps(3);
  Signal(launchers_[1].pid, SIGTERM);
  AwaitBoth(absl::Minutes(1));
  EXPECT_EQ(results_[1].exit_code(), 128 + SIGTERM) << Say(1);
  EXPECT_EQ(results_[0].exit_code(), 128 + SIGTERM) << Say(0);
  EXPECT_THAT(results_[0].err, Not(HasSubstr("failed")));
  EXPECT_NE(access((mark_ + "/failure.json").c_str(), F_OK), 0);
  const json summary = json::parse(ReadAll(mark_ + "/summary.json"));
  const int64_t steps = summary["steps_attempted"];
  EXPECT_EQ(RunProgram({kHalftone, "ckpt", "verify",
                        absl::StrCat(mark_, "/ckpt/step-", steps)})
                .exit_code(),
            0);
}

// Programs of others tell their launchers nothing, who tell each other.
TEST_P(NodesTest, AnyProgramsRankThatDiesEndsBoth) {
  for (const int rank : {0, 3}) {
    launchers_.clear();
    results_.clear();
    mark_ = NewPath("any");
    const std::string script =
        absl::StrCat("touch ", mark_, "-$RANK; if [ $RANK = ", rank,
                     " ]; then sleep 1; exit 5; fi; exec sleep 600");
    Launch({"--", "sh", "-c", script}, {"--log-dir", mark_});
    for (int i = 0; i < 6000; ++i) {
      if (access(absl::StrCat(mark_, "-", rank).c_str(), F_OK) == 0) break;
      absl::SleepFor(absl::Milliseconds(10));
    }
    since_ = absl::Now();
    AwaitBoth(kEnd);
    EXPECT_EQ(results_[rank / kRanks].exit_code(), 5) << Say(rank / kRanks);
    EXPECT_EQ(results_[1 - rank / kRanks].exit_code(), 7)
        << Say(1 - rank / kRanks);
    EXPECT_THAT(results_[1 - rank / kRanks].err,
                HasSubstr(absl::StrCat("rank ", rank, " failed on another")));
    EXPECT_EQ(Failure()["rank"], rank);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, NodesTest,
                         ::testing::Values(Net::kNamespaces, Net::kLoopback),
                         [](const auto& info) {
                           return std::string(info.param == Net::kNamespaces
                                                  ? "Namespaces"
                                                  : "Loopback");
                         });

}  // namespace
}  // namespace halftone
