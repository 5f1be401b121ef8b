// A run whose disk fails at any call that writes: full, over its quota, broken,
// read-only, or with the run's directory gone. What was sound before still is,
// the run says what happened, and goes on later to the same bits.
// HT_TRIALS=1000 tries so many; 0 every call with every cause.
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"
#include "tests/faults/runs.h"
#include "tests/support/trials.h"

namespace halftone {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kFormats[] = "tests/formats/v0.1.0";
constexpr char kGone[] = "gone";

// A run of `out` to its fourth epoch, a step and a checkpoint at a time.
Result Train(const std::string& out, bool resume,
             const std::map<std::string, std::string>& variables = {}) {
  static int runs = 0;
  std::map<std::string, std::string> env = OwnVariables();
  if (!variables.empty()) {
    env["LD_PRELOAD"] = absl::StrCat(fs::current_path().string(),
                                     "/tests/faults/libfailing_writes.so");
    env.insert(variables.begin(), variables.end());
  }
  Parts command = {"tools/halftone",
                   "run",
                   std::string(kFormats) + "/model.htc",
                   "--data",
                   "synthetic:64",
                   "--out",
                   out,
                   "--epochs",
                   resume ? "4" : "2",
                   "--checkpoint-every",
                   "2",
                   "--log-every",
                   "1",
                   "--threads",
                   "1"};
  if (resume) command.push_back("--resume");
  return Wait(Start(absl::StrCat("writes-", runs++), command, env));
}

std::string Weights(const std::string& out) {
  return ReadAll(out + "/ckpt/step-16/state.safetensors");
}

class FailingWrites : public ::testing::Test {
 protected:
  // A run of two epochs, what it comes to, and how many calls that takes.
  static void SetUpTestSuite() {
    begun_ = new std::string(Scratch() + "/run");
    ASSERT_EQ(Train(*begun_, false).exit_code(), 0);
    const std::string whole = Copy(), count = Scratch() + "/count";
    const Result run = Train(whole, true, {{"HT_COUNT_WRITES", count}});
    ASSERT_EQ(run.exit_code(), 0) << run.err;
    weights_ = new std::string(Weights(whole));
    ASSERT_NE(*weights_, "");
    ASSERT_TRUE(absl::SimpleAtoi(ReadAll(count), &calls_));
    ASSERT_GT(calls_, 100);
  }
  static std::string Copy() {
    const std::string copy = Scratch() + "/run";
    fs::copy(*begun_, copy, fs::copy_options::recursive);
    return copy;
  }

  static void Try(int call, const std::string& cause) {
    const std::string out = Copy();
    const std::string what = cause == kGone ? out : cause;
    SCOPED_TRACE(absl::StrCat("HT_FAIL_WRITE=", call, ":", cause));
    const Result run =
        Train(out, true, {{"HT_FAIL_WRITE", absl::StrCat(call, ":", what)}});
    EXPECT_THAT(run.exit_code(), AnyOf(0, 1, 8)) << run.err;
    // An error is one; a run that goes on regardless has done its work.
    if (run.exit_code() != 0) {
      EXPECT_THAT(run.err, HasSubstr("error  "));
    }
    if (fs::exists(out + ".gone")) {
      fs::remove_all(out);
      fs::rename(out + ".gone", out);
    }
    const Result sound = Halftone({"ckpt", "verify", out});
    EXPECT_EQ(sound.exit_code(), 0) << sound.out << sound.err << run.err;
    const Result resumed = Train(out, true);
    EXPECT_EQ(resumed.exit_code(), 0) << resumed.err << run.err;
    EXPECT_EQ(Weights(out), *weights_) << run.err;
  }

  static std::string* begun_;
  static std::string* weights_;
  static int calls_;
};
std::string* FailingWrites::begun_ = nullptr;
std::string* FailingWrites::weights_ = nullptr;
int FailingWrites::calls_ = 0;

TEST_F(FailingWrites, LeaveASoundRunBehind) {
  std::vector<std::string> causes = {kGone};
  for (const int error : {ENOSPC, EIO, EDQUOT, EROFS}) {
    causes.push_back(absl::StrCat(error));
    causes.push_back(absl::StrCat(error, "+"));
  }
  const int all = calls_ * static_cast<int>(causes.size());
  const int wanted = Trials(12);
  const int trials = wanted == 0 ? all : wanted;
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    // Every cause in turn, the calls spread over all.
    const int call = 1 + static_cast<int>(int64_t{trial} * 7919 % calls_);
    Try(call, causes[trial % causes.size()]);
  }
}

}  // namespace
}  // namespace halftone
