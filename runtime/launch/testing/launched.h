// For the tests of launches: test_rank's commands, and what they leave.
#ifndef HALFTONE_RUNTIME_LAUNCH_TESTING_LAUNCHED_H_
#define HALFTONE_RUNTIME_LAUNCH_TESTING_LAUNCHED_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/launch/launcher.h"

namespace halftone {
namespace runtime {

inline constexpr char kTestRank[] = "runtime/launch/test_rank";

inline std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The process that "child N" in `text` names.
inline int ChildOf(const std::string& text) {
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
inline bool IsGone(int pid) {
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

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_TESTING_LAUNCHED_H_
