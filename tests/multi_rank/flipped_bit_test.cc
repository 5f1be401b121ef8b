// One bit that is flipped in one rank's memory: which rank and which parameter,
// and that no checkpoint holds it.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

constexpr char kHalftone[] = "tools/halftone";

// Of a parameter that is not trained: nobody writes over the bit.
constexpr float kUnusual = 0.70710678f;

std::string ModelWithUnusualBias() {
  const std::string text = absl::StrReplaceAll(
      ReadAll("models/mnist_convnet.pbtxt"),
      {{"name: \"conv1.b\" dims: [16] init { uniform { bound: 0.2 } }",
        "name: \"conv1.b\" dims: [16] init { constant: 0.70710678 }"}});
  EXPECT_THAT(text, HasSubstr("constant: 0.70710678"));
  const std::string path = NewPath("unusual") + ".pbtxt";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

// Of the process that is this rank of the run at `out`; -1: none.
pid_t PidOfRank(const std::string& out, int rank) {
  const std::string variable = absl::StrCat("HALFTONE_RANK=", rank);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::string environment =
        std::string(1, '\0') + ReadAll(entry.path() / "environ");
    if (ReadAll(entry.path() / "cmdline").find(out) != std::string::npos &&
        environment.find(std::string(1, '\0') + variable +
                         std::string(1, '\0')) != std::string::npos) {
      return pid;
    }
  }
  return -1;
}

// Flips the lowest bit of the first float wherever `count` of them stand one
// after the other in the process's memory. How often that was; -1: the system
// does not let us.
int FlipBits(pid_t pid, float value, int count) {
  const std::vector<float> pattern(count, value);
  const std::string bytes(reinterpret_cast<const char*>(pattern.data()),
                          count * sizeof(float));
  const int memory = open(absl::StrCat("/proc/", pid, "/mem").c_str(), O_RDWR);
  if (memory < 0) return -1;
  int flipped = 0;
  constexpr uint64_t kMost = uint64_t{1} << 32;  // a sanitizer's shadow is more
  std::istringstream maps(ReadAll(absl::StrCat("/proc/", pid, "/maps")));
  std::string line;
  while (std::getline(maps, line)) {
    uint64_t begin = 0, end = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end,
                    rights) != 3 ||
        std::string(rights, 2) != "rw" || end - begin > kMost) {
      continue;
    }
    std::string content(end - begin, '\0');
    const ssize_t size = pread(memory, &content[0], content.size(), begin);
    if (size <= 0) continue;
    content.resize(size);
    for (size_t at = content.find(bytes); at != std::string::npos;
         at = content.find(bytes, at + bytes.size())) {
      const char other = content[at] ^ 1;
      if (pwrite(memory, &other, 1, begin + at) == 1) ++flipped;
    }
  }
  close(memory);
  return flipped;
}

TEST(FlippedBitTest, IsNamedBeforeTheNextCheckpoint) {
  const std::string out = NewPath("flipped");
  const Child run = Start("flipped",
                          {kHalftone,
                           "launch",
                           "--ranks",
                           "3",
                           "run",
                           ModelWithUnusualBias(),
                           "--strategy",
                           "models/mnist_o1.pbtxt",
                           "--freeze",
                           "conv1.b",
                           "--data",
                           "idx:models/digits",
                           "--epochs",
                           "100000",
                           "--out",
                           out,
                           "--log-every",
                           "1",
                           "--checkpoint-every",
                           "never",
                           "--eval-every",
                           "never",
                           "--compare-every",
                           "5"},
                          OwnVariables());
  while (ReadAll(out + "/metrics.jsonl").find("\"step\":20,") ==
         std::string::npos) {
    ASSERT_EQ(kill(run.pid, 0), 0) << "the run ended";
    absl::SleepFor(absl::Milliseconds(20));
  }
  const pid_t pid = PidOfRank(out, 1);
  ASSERT_GT(pid, 0);
  const int flipped = FlipBits(pid, kUnusual, 16);
  if (flipped < 0) {
    Signal(run.pid, SIGKILL);
    Wait(run);
    GTEST_SKIP() << "the memory of other processes is not to be written here";
  }
  EXPECT_GT(flipped, 0);
  const Result result = Wait(run);
  EXPECT_EQ(result.exit_code(), 3) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("rank 1 has another conv1.b than the other ranks"));
  EXPECT_THAT(result.err, HasSubstr("(nothing else differs)"));
  EXPECT_TRUE(!std::filesystem::exists(out + "/ckpt") ||
              std::filesystem::is_empty(out + "/ckpt"));
}

TEST(CompareEveryTest, TakesStepsAndEpochs) {
  const Result result =
      RunProgram({kHalftone, "run", "models/mnist_convnet.pbtxt", "--strategy",
                  "models/mnist_o1.pbtxt", "--data", "idx:models/digits",
                  "--compare-every", "5m"});
  EXPECT_EQ(result.exit_code(), 2);
  EXPECT_THAT(result.err, HasSubstr("--compare-every \"5m\""));
}

}  // namespace
}  // namespace halftone
