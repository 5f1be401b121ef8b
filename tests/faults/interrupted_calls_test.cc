// Signals interrupt calls of the system: they are made again, and nothing is
// lost or done twice.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using Parts = std::vector<std::string>;

Parts Command(const Parts& arguments) {
  Parts command = {"tools/halftone"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Result Interrupted(const Parts& arguments) {
  std::map<std::string, std::string> env = OwnVariables();
  env["LD_PRELOAD"] = absl::StrCat(std::filesystem::current_path().string(),
                                   "/tests/faults/libinterrupted_calls.so");
  return Wait(Start("interrupted", Command(arguments), env));
}

// What does not depend on the time that things take.
std::string Steps(const std::string& out) {
  std::string steps;
  const std::string log = ReadAll(out + "/metrics.jsonl");
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.find('\n', at);
    const auto line = nlohmann::json::parse(log.substr(at, end - at));
    if (line.contains("step") && line.contains("loss")) {
      absl::StrAppend(&steps, line["step"].dump(), " ", line["loss"].dump(),
                      "\n");
    }
    at = end == std::string::npos ? log.size() : end + 1;
  }
  return steps;
}

class InterruptedCalls : public ::testing::Test {
 protected:
  InterruptedCalls() : expected_(Scratch() + "/run"), out_(Scratch() + "/run") {
    const Result result = Halftone(Training(expected_));
    EXPECT_EQ(result.exit_code(), 0) << result.err;
  }
  static Parts Training(const std::string& out) {
    return {"run",   Convnet(),  "--data",
            kDigits, "--epochs", "1",
            "--out", out,        "--checkpoint-every",
            "10"};
  }
  void ExpectSameRun() {
    EXPECT_EQ(Steps(out_), Steps(expected_));
    EXPECT_NE(Steps(out_), "");
    EXPECT_EQ(FilesBelow(out_ + "/ckpt"), FilesBelow(expected_ + "/ckpt"));
    const Result verified = Halftone({"ckpt", "verify", out_});
    EXPECT_EQ(verified.exit_code(), 0) << verified.err;
  }

  const std::string expected_, out_;
};

TEST_F(InterruptedCalls, EveryOtherCallOfARun) {
  const Result result = Interrupted(Training(out_));
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  ExpectSameRun();
}

TEST_F(InterruptedCalls, EveryOtherCallOfALaunchAndItsRanks) {
  Parts arguments = Training(out_);
  arguments.insert(arguments.begin(), {"launch", "--ranks", "2"});
  const Result result = Interrupted(arguments);
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  const Result verified = Halftone({"ckpt", "verify", out_});
  EXPECT_EQ(verified.exit_code(), 0) << verified.err;
}

TEST_F(InterruptedCalls, EveryOtherCallOfOtherVerbs) {
  for (const Parts& arguments :
       {Parts{"compile", kConvnet, "--strategy", kO1, "-o",
              Scratch() + "/x.htc"},
        Parts{"inspect", Convnet()}, Parts{"ckpt", "verify", expected_},
        Parts{"eval", expected_, "--data", kDigits},
        Parts{"export", expected_, "-o", Scratch() + "/x.safetensors"}}) {
    const Result result = Interrupted(arguments);
    EXPECT_EQ(result.exit_code(), 0) << arguments[0] << ": " << result.err;
  }
}

// A process that is stopped and goes on finds its calls interrupted.
TEST_F(InterruptedCalls, AStormOfSignals) {
  const Child child = Start("storm", Command(Training(out_)), OwnVariables());
  for (int i = 0; i < 200; ++i) {
    Signal(child.pid, SIGSTOP);
    Signal(child.pid, SIGCONT);
    usleep(2000);
  }
  const Result result = Wait(child);
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  ExpectSameRun();
}

}  // namespace
}  // namespace halftone
