// Signals to a launcher, and its death.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/system/repeated_signal.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"
#include "runtime/launch/testing/launched.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
