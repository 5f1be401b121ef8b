// Allocations that fail, one by one and from one on, and an address space that
// is too small: exit code 6 and one line that says what was being done, and
// whatever was written before is whole.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using Parts = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

Result RunWith(const Variables& variables, const Parts& arguments) {
  Variables env = OwnVariables();
  env["OMP_WAIT_POLICY"] = "passive";  // or the program starts itself anew
  for (const auto& [name, value] : variables) env[name] = value;
  Parts command = {"tools/halftone"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Wait(Start("run", command, env));
}

std::string Library() {
  return absl::StrCat(std::filesystem::current_path().string(),
                      "/tests/faults/libfailing_malloc.so");
}

int64_t Allocations(const Parts& arguments) {
  const std::string path = Scratch() + "/count";
  const Result result = RunWith(
      {{"LD_PRELOAD", Library()}, {"HT_COUNT_ALLOCATIONS", path}}, arguments);
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  int64_t count = 0;
  EXPECT_TRUE(absl::SimpleAtoi(ReadAll(path), &count)) << ReadAll(path);
  return count;
}

// Numbers from 1 to `last`: many small ones, and some all over.
std::set<int64_t> Spread(int64_t last, int count) {
  std::set<int64_t> numbers;
  for (int i = 0; i < count; ++i) {
    const double part = (i + 0.5) / count;
    numbers.insert(static_cast<int64_t>(std::pow(last, part)));
    numbers.insert(1 + static_cast<int64_t>(last * part));
  }
  return numbers;
}

void ExpectOutOfMemory(const Result& result, const std::string& what) {
  // The C++ library's own reserve and the like may be done without.
  if (result.exit_code() == 0) return;
  EXPECT_EQ(result.exit_code(), 6) << what << "\n" << result.err;
  EXPECT_THAT(result.err, HasSubstr("error    ")) << what;
}

// Runs the command once for each of `count` allocations. How many ended with 6.
int FailEach(const Parts& arguments, int count, const Variables& more,
             const std::function<void()>& after) {
  const int64_t all = Allocations(arguments);
  after();
  EXPECT_GT(all, 1000);
  int ended = 0;
  for (const int64_t n : Spread(all, count)) {
    Variables variables = more;
    variables["LD_PRELOAD"] = Library();
    variables["HT_FAIL_ALLOCATION"] = absl::StrCat(n);
    const Result result = RunWith(variables, arguments);
    ExpectOutOfMemory(result, absl::StrCat(absl::StrJoin(arguments, " "),
                                           ": allocation ", n, " of ", all));
    ended += result.exit_code() == 6;
    after();
  }
  return ended;
}

class OutOfMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const options : {"ASAN_OPTIONS", "TSAN_OPTIONS"}) {
      if (std::getenv(options) != nullptr) {
        GTEST_SKIP() << "a sanitizer has an allocator of its own";
      }
    }
  }
};

TEST_F(OutOfMemory, WhileCompiling) {
  const Parts command = {"compile", kConvnet, "--strategy",
                         kO1,       "-o",     Scratch() + "/x.htc"};
  EXPECT_GT(FailEach(command, 15, {}, [] {}), 20);
  EXPECT_GT(FailEach(command, 5, {{"HT_FAIL_FROM", "1"}}, [] {}), 7);
}

TEST_F(OutOfMemory, WhileTrainingOnTwoThreads) {
  const std::string out = Scratch() + "/run";
  const Parts command = {
      "run",     Convnet(), "--data", kDigits, "--epochs",           "1",
      "--ranks", "2",       "--out",  out,     "--checkpoint-every", "4"};
  // A run may end before its first checkpoint is whole.
  const auto has_checkpoint = [&out] {
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(out + "/ckpt", none)) {
      if (absl::StartsWith(entry.path().filename().string(), "step-")) {
        return true;
      }
    }
    return false;
  };
  const auto check = [&] {
    if (has_checkpoint()) {
      const Result verified = Halftone({"ckpt", "verify", out});
      EXPECT_EQ(verified.exit_code(), 0) << verified.err;
    }
    std::filesystem::remove_all(out);
  };
  EXPECT_GT(FailEach(command, 15, {}, check), 20);
  EXPECT_GT(FailEach(command, 5, {{"HT_FAIL_FROM", "1"}}, check), 7);
}

// The address space that the loader needs is the least that is tried.
TEST_F(OutOfMemory, WhereTheAddressSpaceIsTooSmall) {
  const auto limited = [](int64_t megabytes, const std::string& words) {
    return RunProgram({"/bin/sh", "-c",
                       absl::StrCat("ulimit -v ", megabytes << 10,
                                    "; exec tools/halftone ", words)});
  };
  int64_t least = 16;
  while (least < 4096 && limited(least, "version").exit_code() != 0) {
    least += 8;
  }
  ASSERT_LT(least, 4096);
  const std::string run = absl::StrCat("run ", Convnet(), " --data ", kDigits,
                                       " --epochs 1 --threads 2");
  bool ended = false;
  const auto ends_well = [&](int64_t megabytes) {
    const Result result = limited(megabytes, run);
    ExpectOutOfMemory(result, absl::StrCat(megabytes, " MiB"));
    ended = ended || result.exit_code() == 6;
    return result.exit_code() == 0;
  };
  int64_t more = 0;
  while (more <= 2048 && !ends_well(least + more)) more = more * 3 / 2 + 8;
  EXPECT_LE(more, 2048);
  // Where it is nearly enough, what fails is what is allocated last: code that
  // products write when they first run, while other threads start.
  for (int i = 1; i <= 16; ++i) ends_well(least + more - 4 * i);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace halftone
