// A process that writes a checkpoint is killed before each of its operations on
// files in turn. Whatever it leaves: every step-N is whole, the newest sound
// one is no older than before, and the next write succeeds and tidies up.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/disk/directory.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint.h"

namespace halftone {
namespace runtime {
namespace {

Checkpoint MakeCheckpoint(int64_t step) {
  Checkpoint checkpoint;
  checkpoint.manifest.step = step;
  checkpoint.tensors = {
      {"w", DType::kF32, {2}, std::string(8, static_cast<char>(step))},
      {"b", DType::kU8, {1}, "b"}};
  return checkpoint;
}

#if defined(__x86_64__)

// Runs `body` in a child and kills it as it enters its `n`-th system call; true
// if it came that far, false if it ended before.
bool KilledAtCall(int n, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ptrace(PTRACE_SETOPTIONS, child, nullptr,
         PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int stops = 0;
  while (true) {
    if (ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0) break;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) || WIFSIGNALED(status)) return false;
    const bool call =
        WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
    // Entries are every other stop.
    if (!call || stops++ % 2 != 0 || stops / 2 + 1 < n) continue;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return true;
  }
  ADD_FAILURE() << "the child cannot be traced";
  return false;
}

// Kills the write of `step` everywhere; `prepare` makes the directory before
// each, `least` is the newest sound step then, `damaged` one that is not (-1:
// all are).
void KillEverywhere(const std::string& name, int keep, int64_t step,
                    int64_t least, int64_t damaged,
                    const std::function<void(const std::string&)>& prepare) {
  int killed = 0;
  for (int n = 1;; ++n) {
    const std::string dir =
        absl::StrCat(::testing::TempDir(), "/", name, "/", n, "/ckpt");
    prepare(dir);
    const bool stopped = KilledAtCall(n, [&] {
      WriteCheckpoint(dir, MakeCheckpoint(step), keep).IgnoreError();
    });
    for (const CheckpointInfo& info : ListCheckpoints(dir)) {
      if (stopped && info.step == damaged) continue;
      EXPECT_TRUE(VerifyCheckpoint(info.path).ok()) << n << " " << info.path;
    }
    std::vector<std::string> skipped;
    const auto latest = ReadLatestCheckpoint(dir, &skipped);
    ASSERT_TRUE(latest.ok()) << n << ": " << latest.status();
    EXPECT_GE(latest->manifest.step, least) << n;
    // The next one tidies up.
    ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step + 10), keep).ok())
        << n;
    for (const std::string& left : Directory::Open(dir)->Names()) {
      EXPECT_FALSE(absl::StartsWith(left, kTemporaryPrefix)) << n << left;
    }
    if (!stopped) break;
    ++killed;
  }
  EXPECT_GT(killed, 20);  // it has more operations than that
}

TEST(KilledWriterTest, KeepOne) {
  KillEverywhere("keep_one", 1, 20, 10, -1, [](const std::string& dir) {
    ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(10), 1).ok());
  });
}

TEST(KilledWriterTest, KeepTwoOfFour) {
  KillEverywhere("keep_two", 2, 50, 40, -1, [](const std::string& dir) {
    for (const int64_t step : {10, 20, 30, 40}) {
      ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step), 4).ok());
    }
  });
}

// A run that passed over a damaged newest one comes to that step again.
TEST(KilledWriterTest, ReplacesADamagedOne) {
  KillEverywhere("replace", 1, 20, 10, 20, [](const std::string& dir) {
    for (const int64_t step : {10, 20}) {
      ASSERT_TRUE(WriteCheckpoint(dir, MakeCheckpoint(step), 2).ok());
    }
    ASSERT_TRUE(
        WriteFileAtomically(dir + "/step-20/state.safetensors", "x").ok());
  });
}

#endif

}  // namespace
}  // namespace runtime
}  // namespace halftone
