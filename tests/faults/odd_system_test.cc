// A system that is short of memory or files, whose clock is set while a run
// goes on, or whose disk is slow.
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Parts = std::vector<std::string>;

Child StartOnOddSystem(const std::string& variable, const std::string& value,
                       const Parts& arguments) {
  static int runs = 0;
  std::map<std::string, std::string> env = OwnVariables();
  env["LD_PRELOAD"] = absl::StrCat(std::filesystem::current_path().string(),
                                   "/tests/faults/libodd_system.so");
  env[variable] = value;
  Parts command = {"tools/halftone"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Start(absl::StrCat("odd-", runs++), command, env);
}

Result OnOddSystem(const std::string& variable, const std::string& value,
                   const Parts& arguments) {
  return Wait(StartOnOddSystem(variable, value, arguments));
}

Parts Training(const std::string& out) {
  return {"run", Convnet(), "--data", kDigits, "--epochs", "1", "--out", out};
}

// Want of memory is 6 wherever the system tells of it; want of files is what
// the file is, with a cause that says so.
TEST(OddSystem, WhatCannotBeOpened) {
  const std::string run = Scratch() + "/run";
  ASSERT_EQ(Halftone(Training(run)).exit_code(), 0);
  const std::string new_run = Scratch() + "/run";
  struct Case {
    std::string path;
    Parts arguments;
    int code;
  };
  for (const Case& c : std::vector<Case>{
           {"mnist_convnet", {"compile", kConvnet, "-o", "/dev/null"}, 1},
           {"mnist_o1",
            {"compile", kConvnet, "--strategy", kO1, "-o", "/dev/null"},
            1},
           {".htc", {"inspect", Convnet()}, 1},
           {"-labels-", {"run", Convnet(), "--data", kDigits}, 1},
           {"state.safetensors", {"ckpt", "verify", run}, 8},
           {"manifest.json", {"ckpt", "verify", run}, 8},
           {"x.st", {"export", run, "-o", Scratch() + "/x.st"}, 1},
           {"metrics.jsonl", Training(new_run), 1},
           {".lock", Training(new_run), 1},
       }) {
    const std::string what =
        absl::StrCat(c.path, ": ", absl::StrJoin(c.arguments, " "));
    const auto with = [&](int error) {
      std::filesystem::remove_all(new_run);
      return OnOddSystem("HT_FAIL_OPEN", absl::StrCat(c.path, ":", error),
                         c.arguments);
    };
    const Result memory = with(ENOMEM);
    EXPECT_EQ(memory.exit_code(), 6) << what << "\n" << memory.err;
    EXPECT_THAT(memory.err, HasSubstr("Cannot allocate memory")) << what;
    for (const int error : {EMFILE, ENFILE}) {
      const Result files = with(error);
      EXPECT_EQ(files.exit_code(), c.code) << what << "\n" << files.err;
      EXPECT_THAT(files.err, HasSubstr("Too many open files")) << what;
    }
  }
}

TEST(OddSystem, SocketsThatCannotBeMade) {
  Parts launch = Training(Scratch() + "/run");
  launch.insert(launch.begin(), {"launch", "--ranks", "2"});
  const Result memory =
      OnOddSystem("HT_FAIL_SOCKET", absl::StrCat(ENOMEM), launch);
  EXPECT_EQ(memory.exit_code(), 6) << memory.err;
  EXPECT_THAT(memory.err, HasSubstr("Cannot allocate memory"));
  const Result files =
      OnOddSystem("HT_FAIL_SOCKET", absl::StrCat(EMFILE), launch);
  EXPECT_EQ(files.exit_code(), 7) << files.err;
  EXPECT_THAT(files.err, HasSubstr("Too many open files"));
}

// Somebody sets the clock an hour ahead and back, all the time.
TEST(OddSystem, AClockThatIsSet) {
  for (const char* jump : {"3600", "-3600"}) {
    Parts launch = Training(Scratch() + "/run");
    launch.insert(launch.begin(), {"launch", "--ranks", "2"});
    const Result result = OnOddSystem("HT_CLOCK_JUMPS", jump, launch);
    EXPECT_EQ(result.exit_code(), 0) << jump << "\n" << result.err;
    EXPECT_THAT(result.out, HasSubstr("ranks bitwise equal")) << jump;
    EXPECT_THAT(result.err, Not(AnyOf(HasSubstr("3600"), HasSubstr("60 min"),
                                      HasSubstr("1 h"))));
  }
}

// Rank 0 takes longer over a file than a rank that hangs is given. All that
// the runs do is wait, so that they do it together.
TEST(OddSystem, ADiskThatIsSlowerThanAHang) {
  struct Run {
    std::string out;
    Parts command;
  };
  std::vector<Run> runs;
  for (const Parts& ranks : {Parts{"launch", "--ranks", "2"}, Parts{}}) {
    const std::string out = Scratch() + "/run";
    Parts command = Training(out);
    command.insert(command.begin(), ranks.begin(), ranks.end());
    if (ranks.empty()) command.insert(command.end(), {"--ranks", "2"});
    command.insert(command.end(), {"--timeout", "1"});
    runs.push_back({out, command});
  }
  const auto run_all = [&runs] {
    std::vector<Child> children;
    for (const Run& run : runs) {
      children.push_back(
          StartOnOddSystem("HT_SLOW_FSYNC", "1200", run.command));
    }
    for (const Child& child : children) {
      const Result result = Wait(child);
      EXPECT_EQ(result.exit_code(), 0) << result.err;
    }
  };
  run_all();
  for (Run& run : runs) {
    EXPECT_EQ(Halftone({"ckpt", "verify", run.out}).exit_code(), 0);
    // And reads what is there again.
    run.command.push_back("--resume");
  }
  run_all();
}

}  // namespace
}  // namespace halftone
