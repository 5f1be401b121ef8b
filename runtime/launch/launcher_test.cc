#include "runtime/launch/launcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/disk/directory_lock.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/launch/testing/launched.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(LauncherTest, GivesEachRankItsPlaceAndItsLogs) {
  EXPECT_EQ(Run({"*:env=HALFTONE_RANK", "*:env=HALFTONE_LOCAL_WORLD_SIZE",
                 "*:env=OMP_NUM_THREADS", "1:err=note"}),
            0)
      << Err();
  EXPECT_THAT(Log("attempt-0/rank-0.out"), HasSubstr("HALFTONE_RANK=0\n"));
  EXPECT_THAT(Log("attempt-0/rank-1.out"),
              HasSubstr("HALFTONE_RANK=1\nHALFTONE_LOCAL_WORLD_SIZE=2\n"));
  EXPECT_EQ(Log("attempt-0/rank-1.err"), "note\n");
  EXPECT_THAT(Out(), HasSubstr("HALFTONE_RANK=0"));  // as it comes
  EXPECT_THAT(Out(), Not(HasSubstr("HALFTONE_RANK=1")));
  EXPECT_THAT(Err(), HasSubstr("launch   2 ranks on this machine (cpu, gloo "
                               "127.0.0.1:"));
  EXPECT_THAT(Err(), HasSubstr("each; logs "));
  EXPECT_THAT(Err(), HasSubstr("/attempt-0/rank-{0,1}.{out,err}\n"));
}

// What scripts of PyTorch and Paddle read; the port is not our store's.
TEST_F(LauncherTest, GivesProgramsTheVariablesOfOtherLaunchers) {
  EXPECT_EQ(
      Run({"*:env=RANK", "*:env=WORLD_SIZE", "*:env=LOCAL_RANK",
           "*:env=LOCAL_WORLD_SIZE", "*:env=MASTER_ADDR",
           "*:env=PADDLE_TRAINER_ID", "*:env=PADDLE_TRAINERS_NUM", "0:listen",
           "*:env=PADDLE_CURRENT_ENDPOINT", "*:env=PADDLE_TRAINER_ENDPOINTS"}),
      0)
      << Err();
  const std::string log = Log("attempt-0/rank-1.out");
  EXPECT_THAT(log, HasSubstr("RANK=1\nWORLD_SIZE=2\nLOCAL_RANK=1\n"
                             "LOCAL_WORLD_SIZE=2\nMASTER_ADDR=127.0.0.1\n"
                             "PADDLE_TRAINER_ID=1\nPADDLE_TRAINERS_NUM=2\n"
                             "PADDLE_CURRENT_ENDPOINT=127.0.0.1:"));
  const std::vector<std::string> lines = absl::StrSplit(log, '\n');
  const std::vector<std::string> current = absl::StrSplit(lines[7], '=');
  EXPECT_THAT(lines[8], HasSubstr("," + current[1]));
  EXPECT_THAT(Log("attempt-0/rank-0.out"), HasSubstr("\nlistens\n"));
}

// As they are without --role and --rdzv-id.
TEST_F(LauncherTest, GivesProgramsTheirRoleAndTheRunsId) {
  EXPECT_EQ(Run({"1:env=ROLE_NAME", "1:env=ROLE_RANK", "1:env=ROLE_WORLD_SIZE",
                 "1:env=TORCHELASTIC_RUN_ID",
                 "1:env=TORCH_NCCL_ASYNC_ERROR_HANDLING"}),
            0)
      << Err();
  EXPECT_EQ(Log("attempt-0/rank-1.out"),
            "ROLE_NAME=default\nROLE_RANK=1\nROLE_WORLD_SIZE=2\n"
            "TORCHELASTIC_RUN_ID=none\nTORCH_NCCL_ASYNC_ERROR_HANDLING=1\n");
}

TEST_F(LauncherTest, EachLaunchHasLogsOfItsOwn) {
  EXPECT_EQ(Run({"*:out=first", "1:exit=3", "0:sleep=60000"}), 3);
  EXPECT_EQ(Failure()["rank"], 1);
  EXPECT_EQ(Run({"*:out=second"}), 0);
  EXPECT_EQ(Log("attempt-0/rank-0.out"), "first\n");
  EXPECT_EQ(Log("attempt-1/rank-0.out"), "second\n");
  EXPECT_THAT(Err(), HasSubstr("/attempt-1/rank-{0,1}.{out,err}\n"));
  // What failed is done.
  EXPECT_NE(access((dir_ + "/logs/failure.json").c_str(), F_OK), 0);
  // A node that shares the folder writes into the same.
  ASSERT_EQ(mkdir((dir_ + "/logs/attempt-2").c_str(), 0700), 0);
  std::ofstream(dir_ + "/logs/attempt-2/rank-2.out") << "of another node";
  EXPECT_EQ(Run({"*:out=third"}), 0);
  EXPECT_EQ(Log("attempt-2/rank-0.out"), "third\n");
}

TEST_F(LauncherTest, OneLaunchWritesLogsAtATime) {
  auto lock = DirectoryLock::Take(options_.log_dir);
  ASSERT_TRUE(lock.ok()) << lock.status();
  options_.command = {kTestRank};
  auto code = Launch(options_);
  EXPECT_EQ(ExitCodeOf(code.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(code.status().message()),
              AllOf(HasSubstr("/logs is in use by pid"),
                    HasSubstr("choose another --log-dir")));
  EXPECT_NE(access((dir_ + "/logs/attempt-0").c_str(), F_OK), 0);
}

// Its ranks made no run directory, or another run has it.
TEST_F(LauncherTest, WithoutARunDirectoryTheReportIsBesideTheLogs) {
  options_.own_verb = true;
  const std::string out = dir_ + "/run";
  EXPECT_EQ(Run({"run", "--out", out, "1:exit=1", "0:sleep=60000"}), 1);
  EXPECT_EQ(Failure()["rank"], 1);
  EXPECT_NE(access(out.c_str(), F_OK), 0);
  unlink((dir_ + "/logs/failure.json").c_str());
  ASSERT_EQ(mkdir(out.c_str(), 0700), 0);
  int asked = 0;
  options_.may_use_out = [&asked](const std::string&, bool) {
    return ++asked == 1 ? absl::OkStatus() : UsageError("in use");
  };
  EXPECT_EQ(Run({"run", "--out", out, "1:exit=2", "0:sleep=60000"}), 2);
  EXPECT_EQ(Failure()["exit_code"], 2);
  EXPECT_NE(access((out + "/failure.json").c_str(), F_OK), 0);
}

// A name in /tmp that can be guessed belongs to whoever makes it first.
TEST_F(LauncherTest, LogsWithoutAPlaceGoWhereNobodyElseCanBe) {
  options_.log_dir.clear();
  Environment env = CurrentEnvironment();
  env["TMPDIR"] = dir_;
  options_.command = {kTestRank, "1:out=here"};
  auto code = Launch(options_, env);
  ASSERT_TRUE(code.ok()) << code.status();
  const std::string err = Err();
  const size_t at = err.find(dir_ + "/halftone-logs-");
  ASSERT_NE(at, std::string::npos) << err;
  const std::string logs = err.substr(at, err.find("/attempt-0", at) - at);
  struct stat info;
  ASSERT_EQ(stat(logs.c_str(), &info), 0) << logs;
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(ReadAll(logs + "/attempt-0/rank-1.out"), "here\n");
}

TEST_F(LauncherTest, ALinkInThePlaceOfALogIsNotFollowed) {
  mkdir((dir_ + "/logs").c_str(), 0700);
  mkdir((dir_ + "/logs/attempt-0").c_str(), 0700);
  const std::string target = dir_ + "/somebody's";
  std::ofstream(target) << "precious";
  ASSERT_EQ(
      symlink(target.c_str(), (dir_ + "/logs/attempt-0/rank-1.err").c_str()),
      0);
  options_.command = {kTestRank};
  auto code = Launch(options_);
  EXPECT_EQ(ExitCodeOf(code.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(code.status().message()),
              HasSubstr("rank-1.err: it is a link, which is not followed"));
  ASSERT_EQ(
      rename((dir_ + "/logs/attempt-0").c_str(), (dir_ + "/elsewhere").c_str()),
      0);
  ASSERT_EQ(symlink((dir_ + "/elsewhere").c_str(),
                    (dir_ + "/logs/attempt-0").c_str()),
            0);
  EXPECT_THAT(std::string(Launch(options_).status().message()),
              HasSubstr("attempt-0 is a link, which is not followed"));
  EXPECT_EQ(ReadAll(target), "precious");
}

TEST_F(LauncherTest, TeeShowsOtherRanksWithTheirNumber) {
  options_.ranks = "3";
  options_.tee = {2};
  EXPECT_EQ(Run({"1:out=one", "2:out=two", "2:err=progress", "2:part=rest"}),
            0);
  EXPECT_EQ(Out(), "[2] two\n");
  EXPECT_THAT(Err(), HasSubstr("[2] progress\n"));
  EXPECT_THAT(Err(), HasSubstr("[2] rest\n"));
}

TEST_F(LauncherTest, WarningsAndErrorsOfAnyRankShow) {
  EXPECT_EQ(Run({"1:err=epoch 1", "1:err=warning  disk is slow",
                 "1:err=Error: bad", "1:err=no errors so far"}),
            0);
  EXPECT_THAT(Err(), HasSubstr("[1] warning  disk is slow\n"));
  EXPECT_THAT(Err(), HasSubstr("[1] Error: bad\n"));
  EXPECT_THAT(Err(), Not(HasSubstr("epoch 1")));
  EXPECT_THAT(Err(), Not(HasSubstr("no errors so far")));
}

// Another program's exit codes are its own.
TEST_F(LauncherTest, ExplainsNoCodesOfOtherPrograms) {
  options_.command = {"/bin/sh", "-c", "exit 3"};
  const auto code = Launch(options_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 3);
  EXPECT_THAT(Err(), HasSubstr(": exit code 3\n"));
}

TEST_F(LauncherTest, NamesTheCulpritWithStepCauseAndLog) {
  EXPECT_EQ(Run({"*:step=70", "1:activity=matmul fc0",
                 "0:activity=all_reduce bucket 2", "1:err=about to die",
                 "0:sleep=100", "1:sleep=200", "1:exit=3", "0:sleep=60000"}),
            3);
  EXPECT_LT(elapsed_, absl::Seconds(3));
  EXPECT_THAT(Err(), HasSubstr("error    rank 1 failed: pid "));
  EXPECT_THAT(Err(), HasSubstr(", cpu, step 70: exit code 3 (a check failed)"));
  EXPECT_THAT(Err(), HasSubstr("it was in: matmul fc0"));
  EXPECT_THAT(Err(), HasSubstr("rank 0 waits for it, step 70, in: all_reduce "
                               "bucket 2"));
  EXPECT_THAT(Err(), HasSubstr("| about to die"));
  const nlohmann::json json = Failure();
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["step"], 70);
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["waiting"][0]["rank"], 0);
  EXPECT_EQ(json["log_end"][0], "about to die");
}

// A program's own output is its own; what the launcher quotes of it is not.
TEST_F(LauncherTest, QuotesMoveNoCursor) {
  const std::string odd =
      "a\033]0;t\007b\x9b\xc2\x9b"
      "2Jc\xe2\x80\xae"
      "d";
  options_.tee_all = true;
  EXPECT_EQ(Run({"*:step=1", "1:activity=" + odd,
                 "1:err=" + odd + " \033[1;31mred\033[0m", "0:activity=" + odd,
                 "1:sleep=100", "1:exit=3", "0:sleep=60000"}),
            3);
  const std::string err = Err();
  EXPECT_THAT(err, HasSubstr("[1] " + odd));
  const size_t report = err.find("error    rank 1");
  ASSERT_NE(report, std::string::npos) << err;
  const std::string quotes = err.substr(report);
  const std::string shown = "a\\u001b]0;t\\u0007b\\x9b\\u009b2Jc\\u202ed";
  EXPECT_THAT(quotes, HasSubstr("it was in: " + shown + "\n"));
  EXPECT_THAT(quotes, HasSubstr("in: " + shown + "\n"));
  EXPECT_THAT(quotes, HasSubstr("| " + shown + " red\n"));
  for (const char c : quotes) {
    EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << int{c};
  }
}

TEST_F(LauncherTest, ASignalIs128AndItsNumber) {
  EXPECT_EQ(Run({"1:raise=9", "0:sleep=60000"}), 137);
  EXPECT_THAT(Err(), HasSubstr("signal 9 (SIGKILL)"));
  EXPECT_EQ(Failure()["signal"], 9);
  EXPECT_EQ(Run({"0:raise=6", "1:sleep=60000"}), 134);
  EXPECT_THAT(Err(), HasSubstr("signal 6 (SIGABRT)"));
}

TEST_F(LauncherTest, AllOthersAreGoneWithinTwoSeconds) {
  options_.ranks = "3";
  // They refuse to end, and have children that do so too.
  EXPECT_EQ(Run({"*:ignore=15", "0:child", "0:sleep=300", "1:sleep=300",
                 "1:exit=9", "*:sleep=60000"}),
            9);
  EXPECT_LT(elapsed_, absl::Milliseconds(2600));  // 0.3 until the failure
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_TRUE(IsGone(ChildOf(Out())));
}

TEST_F(LauncherTest, TheCulpritIsWhoFailedByItself) {
  // Rank 0 notices first that its peer is gone, and says 7.
  EXPECT_EQ(Run({"0:sleep=100", "0:exit=7", "1:sleep=200", "1:exit=6"}), 6);
  EXPECT_THAT(Err(), HasSubstr("rank 1 failed"));
}

// Ranks that end with one error, which is that of one of them.
TEST_F(LauncherTest, TheCulpritIsWhoseErrorItIs) {
  options_.own_verb = true;
  EXPECT_EQ(Run({"1:err=error    rank 0: no checkpoint at the end", "1:exit=8",
                 "0:err=error    no checkpoint at the end", "0:sleep=100",
                 "0:exit=8"}),
            8);
  EXPECT_THAT(Err(), HasSubstr("error    rank 0 failed: "));
  EXPECT_EQ(Failure()["rank"], 0);
  EXPECT_EQ(Failure()["log_end"][0], "error    no checkpoint at the end");
}

TEST_F(LauncherTest, TheErrorOfARankOfAnotherNodeIsNotBlamedOnOneHere) {
  options_.own_verb = true;
  EXPECT_EQ(Run({"1:err=error    rank 5: no checkpoint at the end", "1:exit=8",
                 "0:sleep=60000"}),
            8);
  EXPECT_THAT(Err(), HasSubstr("error    rank 5 failed on another node"));
  EXPECT_THAT(Err(), HasSubstr("rank 1 here: exit code 8"));
}

TEST_F(LauncherTest, AHungRankIsNamedByThoseWhoWaited) {
  EXPECT_EQ(Run({"*:step=5", "1:activity=reading data", "0:sleep=100",
                 "0:late=1", "0:exit=7", "1:sleep=60000"}),
            7);
  EXPECT_LT(elapsed_, absl::Seconds(3));
  EXPECT_THAT(Err(), HasSubstr("error    rank 1 failed: "));
  EXPECT_THAT(Err(), HasSubstr("step 5: it hung: the others waited"));
  EXPECT_THAT(Err(), HasSubstr("it was in: reading data"));
  EXPECT_THAT(Err(), HasSubstr("the ranks say: rank 1 is late"));
  EXPECT_EQ(Failure()["rank"], 1);
}

TEST_F(LauncherTest, RestartsFromTheCheckpoint) {
  options_.own_verb = true;
  options_.max_restarts = 2;
  EXPECT_EQ(Run({"0:checkpoint=64", "*:step=70", "a0/1:sleep=100",
                 "a0/1:raise=9", "a0/0:sleep=60000", "*:out=done"}),
            0)
      << Err();
  EXPECT_THAT(Err(), HasSubstr("restart 1 of 2 from the checkpoint of step "
                               "64\n"));
  EXPECT_EQ(Log("attempt-1/rank-1.out"), "done\nresumed\n");
  EXPECT_THAT(Log("attempt-0/rank-1.out"), Not(HasSubstr("resumed")));
}

// Another launcher, or one of the ranks, was asked to end the run: all have
// saved, and none has failed.
TEST_F(LauncherTest, RanksThatASignalStoppedEndTheRun) {
  options_.own_verb = true;
  options_.max_restarts = 2;
  EXPECT_EQ(Run({"*:step=70", "1:exit=143", "0:sleep=600", "0:exit=143"}), 143);
  EXPECT_THAT(Err(), Not(AnyOf(HasSubstr("failed"), HasSubstr("restart"))));
  EXPECT_NE(access((dir_ + "/logs/failure.json").c_str(), F_OK), 0);
}

// Nobody says that it has saved.
TEST_F(LauncherTest, ARankThatASignalKilledIsStartedAgain) {
  options_.own_verb = true;
  options_.max_restarts = 1;
  EXPECT_EQ(Run({"a0/1:raise=15", "a0/0:sleep=60000"}), 0) << Err();
  EXPECT_THAT(Err(), HasSubstr("rank 1 failed: pid "));
  EXPECT_THAT(Err(), HasSubstr("restart 1 of 1"));
}

// Another program's codes are its own.
TEST_F(LauncherTest, AnotherProgramsRanksAreNotStoppedByTheirCodes) {
  options_.max_restarts = 1;
  EXPECT_EQ(Run({"a0/1:exit=143", "a0/0:sleep=60000"}), 0) << Err();
  EXPECT_THAT(Err(), HasSubstr("restart 1 of 1"));
}

// What another program's flags are is not known.
TEST_F(LauncherTest, AnotherProgramStartsAgainAsItIs) {
  options_.max_restarts = 2;
  EXPECT_EQ(Run({"a0/1:raise=9", "a0/0:sleep=60000",
                 "*:env=TORCHELASTIC_RESTART_COUNT"}),
            0)
      << Err();
  EXPECT_EQ(Log("attempt-1/rank-1.out"), "TORCHELASTIC_RESTART_COUNT=1\n");
  EXPECT_THAT(Err(), HasSubstr("restart 1 of 2: the same command once more\n"));
}

TEST_F(LauncherTest, TheSameDeathTwiceStopsTheRestarts) {
  options_.max_restarts = 5;
  EXPECT_EQ(Run({"*:step=70", "1:raise=9", "0:sleep=60000"}), 137);
  EXPECT_THAT(Err(), HasSubstr("restart 1 of 5"));
  EXPECT_THAT(Err(), Not(HasSubstr("restart 2 of 5")));
  EXPECT_THAT(Err(), HasSubstr("rank 1 failed twice at step 70"));
}

TEST_F(LauncherTest, AnExitCodeThatWouldComeAgainStopsTheRestarts) {
  options_.max_restarts = 5;
  EXPECT_EQ(Run({"1:exit=1", "0:sleep=60000"}), 1);
  EXPECT_THAT(Err(), HasSubstr("exit code 1 would come again"));
}

TEST_F(LauncherTest, RestartsAreUsedUp) {
  options_.max_restarts = 1;
  EXPECT_EQ(Run({"a0/*:step=1", "a1/*:step=2", "1:raise=9", "0:sleep=60000"}),
            137);
  EXPECT_THAT(Err(), HasSubstr("all restarts are used up (--max-restarts 1)"));
}

TEST_F(LauncherTest, ACommandThatIsNotThereIsAnError) {
  options_.command = {"no-such-program"};
  auto code = Launch(options_);
  EXPECT_EQ(ExitCodeOf(code.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(code.status().message()),
              HasSubstr("cannot start no-such-program: it is not in PATH"));
  options_.command.clear();
  EXPECT_EQ(ExitCodeOf(Launch(options_).status()), ExitCode::kUsage);
}

TEST_F(LauncherTest, ExplainStartsNothing) {
  options_.explain = true;
  options_.command = {"no-such-program", "run"};
  auto code = Launch(options_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_THAT(Out(), HasSubstr("ranks       2 here"));
  EXPECT_THAT(Out(), HasSubstr("loopback, a random port"));
  EXPECT_THAT(Out(), HasSubstr("command     no-such-program run"));
  EXPECT_EQ(Err(), "");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
