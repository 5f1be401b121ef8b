#include "runtime/launch/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/disk/directory_lock.h"
#include "graph/base/error.h"
#include "graph/base/system/repeated_signal.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTestRank[] = "runtime/launch/test_rank";

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The process that "child N" in `text` names.
int ChildOf(const std::string& text) {
  int child = 0;
  const size_t at = text.find("child ");
  if (at == std::string::npos ||
      !absl::SimpleAtoi(text.substr(at + 6, text.find('\n', at) - at - 6),
                        &child)) {
    ADD_FAILURE() << text;
  }
  return child;
}

// Ended, or a zombie that nobody has collected yet.
bool IsGone(int pid) {
  const std::string stat = ReadAll(absl::StrCat("/proc/", pid, "/stat"));
  return stat.empty() || absl::StrContains(stat, ") Z");
}

// Launches test_rank in this process, its output in files.
class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest()
      : dir_(absl::StrCat(
            ::testing::TempDir(), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    mkdir(dir_.c_str(), 0700);
    options_.ranks = "2";
    options_.log_dir = dir_ + "/logs";
    options_.out_fd = OpenNew(dir_ + "/console.out");
    options_.err_fd = OpenNew(dir_ + "/console.err");
  }
  ~LauncherTest() override {
    close(options_.out_fd);
    close(options_.err_fd);
  }

  static int OpenNew(const std::string& path) {
    return open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  }
  int Run(const std::vector<std::string>& actions) {
    options_.command = {kTestRank};
    options_.command.insert(options_.command.end(), actions.begin(),
                            actions.end());
    const MonotonicTime start = MonotonicTime::Now();
    auto code = Launch(options_);
    elapsed_ = MonotonicTime::Now() - start;
    EXPECT_TRUE(code.ok()) << code.status();
    return code.ok() ? *code : -1;
  }
  std::string Out() const { return ReadAll(dir_ + "/console.out"); }
  std::string Err() const { return ReadAll(dir_ + "/console.err"); }
  std::string Log(const std::string& name) const {
    return ReadAll(dir_ + "/logs/" + name);
  }
  nlohmann::json Failure() const {
    return nlohmann::json::parse(Log("failure.json"));
  }

  std::string dir_;
  LaunchOptions options_;
  absl::Duration elapsed_;
};

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

// A launcher in a process of its own, to which signals are sent.
class SignalTest : public LauncherTest {
 protected:
  void Start(const std::vector<std::string>& actions,
             const std::string& restarts = "0") {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, options_.out_fd, 1);
    posix_spawn_file_actions_adddup2(&files, options_.err_fd, 2);
    std::vector<std::string> words = {kTestRank,        "launch", "2",
                                      options_.log_dir, restarts, kTestRank};
    words.insert(words.end(), actions.begin(), actions.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(&word[0]);
    argv.push_back(nullptr);
    ASSERT_EQ(
        posix_spawn(&pid_, kTestRank, &files, nullptr, argv.data(), environ),
        0);
    posix_spawn_file_actions_destroy(&files);
  }
  // Until all ranks have printed "ready".
  void AwaitReady() {
    for (int i = 0; i < 2000; ++i) {
      if (absl::StrContains(Log("attempt-0/rank-0.out"), "ready") &&
          absl::StrContains(Log("attempt-0/rank-1.out"), "ready")) {
        return;
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
    FAIL() << Err();
  }
  // What "child N" in a log names; 0 while it is not there.
  int ChildOfLog(const std::string& name) const {
    const std::string log = Log(name);
    return absl::StrContains(log, "child ") && log.back() == '\n' ? ChildOf(log)
                                                                  : 0;
  }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t pid_ = -1;
};

TEST_F(SignalTest, TheFirstLetsTheRanksFinish) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    for (const char* rank : {"0", "1"}) {  // of the signal before
      for (const char* stream : {".out", ".err"}) {
        unlink(
            absl::StrCat(dir_, "/logs/attempt-0/rank-", rank, stream).c_str());
      }
    }
    Start({"*:finish"});
    AwaitReady();
    kill(pid_, number);
    EXPECT_EQ(Wait(), 128 + number);
    const std::string said = absl::StrCat("ready\nsaved ", number, "\n");
    EXPECT_EQ(Log("attempt-0/rank-0.out"), said);
    EXPECT_EQ(Log("attempt-0/rank-1.out"), said);
    EXPECT_THAT(Err(), HasSubstr("the ranks finish their step"));
    EXPECT_THAT(Err(), Not(HasSubstr("failed")));
  }
}

TEST_F(SignalTest, TheSecondStopsThemNow) {
  Start({"*:ignore=2", "*:out=ready", "*:sleep=60000"});
  AwaitReady();
  kill(pid_, SIGINT);
  kill(pid_, SIGINT);  // at once: the same request
  absl::SleepFor(absl::Milliseconds(4 * kSameRequestMs));
  const MonotonicTime start = MonotonicTime::Now();
  kill(pid_, SIGINT);
  EXPECT_EQ(Wait(), 130);
  EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(2));
  EXPECT_THAT(Err(), HasSubstr("SIGINT again: the ranks are killed"));
}

TEST_F(SignalTest, AFailureWhileFinishingCounts) {
  Start({"0:finish", "1:ignore=2", "1:out=ready", "1:sleep=500", "1:exit=8"});
  AwaitReady();
  kill(pid_, SIGINT);
  EXPECT_EQ(Wait(), 8);
}

// The process that is a fork of the launcher and no rank.
pid_t KeeperOf(pid_t launcher) {
  std::ifstream children(
      absl::StrCat("/proc/", launcher, "/task/", launcher, "/children"));
  pid_t child = 0;
  while (children >> child) {
    const std::string command =
        ReadAll(absl::StrCat("/proc/", child, "/cmdline"));
    if (absl::StrContains(command, std::string("\0launch\0", 8))) return child;
  }
  return -1;
}

TEST_F(SignalTest, ADeadKeeperTakesNobodyWithIt) {
  Start({"*:out=ready", "a0/0:sleep=60000", "a0/1:sleep=1000", "a0/1:raise=9",
         "a1/*:child", "a1/*:sleep=60000"},
        "1");
  AwaitReady();
  const pid_t keeper = KeeperOf(pid_);
  ASSERT_GT(keeper, 0);
  kill(keeper, SIGKILL);
  for (int i = 0; i < 2000 && ChildOfLog("attempt-1/rank-0.out") == 0; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(Err(), HasSubstr("rank 1 failed"));
  EXPECT_THAT(Err(), HasSubstr("restart 1 of 1"));
  // Another keeper is there by then.
  const int child = ChildOfLog("attempt-1/rank-0.out");
  ASSERT_GT(child, 0) << Err();
  kill(pid_, SIGKILL);
  Wait();
  const MonotonicTime limit = MonotonicTime::Now() + absl::Seconds(2);
  while (!IsGone(child) && MonotonicTime::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(IsGone(child));
}

TEST_F(SignalTest, OutputThatNobodyReadsEndsNoRun) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(options_.out_fd);
  close(options_.err_fd);
  options_.out_fd = ends[1];
  options_.err_fd = dup(ends[1]);
  Start({"*:out=ready", "0:sleep=300", "0:out=more", "0:err=more",
         "1:sleep=600", "1:exit=3", "0:sleep=60000"});
  AwaitReady();
  close(options_.out_fd);
  close(options_.err_fd);
  close(ends[0]);
  EXPECT_EQ(Wait(), 3);
  EXPECT_EQ(Failure()["rank"], 1);
  EXPECT_THAT(Log("attempt-0/rank-0.out"), HasSubstr("more"));
  options_.out_fd = OpenNew(dir_ + "/console.out");
  options_.err_fd = OpenNew(dir_ + "/console.err");
}

TEST_F(SignalTest, RanksDoNotOutliveALauncherThatIsKilled) {
  // Nor do children of theirs, though they ignore signals.
  Start({"*:child", "*:out=ready", "*:sleep=60000"});
  AwaitReady();
  kill(pid_, SIGKILL);
  Wait();
  const int child = ChildOf(Log("attempt-0/rank-0.out"));
  const MonotonicTime limit = MonotonicTime::Now() + absl::Seconds(2);
  while (!IsGone(child) && MonotonicTime::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(IsGone(child));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
