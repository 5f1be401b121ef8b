// A run's secret is in no command line that others see, in no log and in no
// file of the run, however it was given.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"
#include "tests/faults/runs.h"

namespace halftone {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSecret[] = "s3cr3t-0f-this-run-6f1d";

// Processes whose command line has `mark`; fails if one has the secret, too.
int LookAtCommands(const std::string& mark) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = ReadAll(entry.path().string() + "/cmdline");
    if (!absl::StrContains(command, mark)) continue;
    EXPECT_THAT(command, Not(HasSubstr(kSecret)));
    ++found;
  }
  return found;
}

void ExpectNowhere(const std::string& folder) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(ReadAll(entry.path().string()), Not(HasSubstr(kSecret)))
        << entry.path();
    ++files;
  }
  EXPECT_GT(files, 5);
}

TEST(Secrets, StayWhereTheyWerePut) {
  const std::string file = WriteNew("token", kSecret);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  for (const bool by_file : {true, false}) {
    const std::string out = Scratch() + "/run";
    std::map<std::string, std::string> env = OwnVariables();
    Parts command = RunCommand(out, {"--epochs", "3"});
    command.insert(command.begin(), {"launch", "--ranks", "2"});
    if (by_file) {
      command.insert(command.begin() + 1, {"--token-file", file});
    } else {
      env["HALFTONE_TOKEN"] = kSecret;
    }
    command.insert(command.begin(), "tools/halftone");
    const Child child = Start(
        absl::StrCat("secret-", by_file ? "file" : "variable"), command, env);
    // The launcher and its ranks.
    WaitUntil(child, [&out] { return LookAtCommands(out) >= 3; });
    const Result result = Wait(child);
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    EXPECT_THAT(result.out + result.err, Not(HasSubstr(kSecret)));
    ExpectNowhere(out);
  }
}

}  // namespace
}  // namespace halftone
