#include "tests/faults/faults.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A 1 GB claim that is believed shows; a sanitizer's own memory does not, but
// for the thread sanitizer's, which is several times what is used.
#ifdef __SANITIZE_THREAD__
constexpr int64_t kMostBytes = int64_t{4} << 30;
#else
constexpr int64_t kMostBytes = int64_t{800} << 20;
#endif

}  // namespace

std::string Scratch() {
  static int made = 0;
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/faults-", getpid(), "-", made++);
  std::filesystem::create_directories(path);
  return path;
}

void WriteTo(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  ASSERT_TRUE(out.good()) << path;
}

std::string WriteNew(const std::string& name, const std::string& content) {
  const std::string path = absl::StrCat(Scratch(), "/", name);
  WriteTo(path, content);
  return path;
}

Result Halftone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

const std::string& Convnet() {
  static const std::string* path = [] {
    auto* model = new std::string(Scratch() + "/mnist.htc");
    const Result compiled =
        Halftone({"compile", kConvnet, "--strategy", kO1, "-o", *model});
    EXPECT_EQ(compiled.exit_code(), 0) << compiled.err;
    return model;
  }();
  return *path;
}

void ExpectRefused(const std::vector<std::string>& arguments, int code,
                   const std::vector<std::string>& says) {
  const Result result = Halftone(arguments);
  const std::string command = absl::StrJoin(arguments, " ");
  EXPECT_EQ(result.exit_code(), code) << command << "\n" << result.err;
  EXPECT_EQ(result.out, "") << command;
  EXPECT_THAT(result.err, StartsWith("error    ")) << command;
  // One line; independent errors of a file come together, each on its own.
  for (size_t at = result.err.find('\n'); at + 1 < result.err.size();
       at = result.err.find('\n', at + 1)) {
    EXPECT_EQ(result.err.compare(at + 1, 9, std::string(9, ' ')), 0)
        << command << "\n"
        << result.err;
  }
  for (const std::string& part : says) {
    EXPECT_THAT(result.err, HasSubstr(part)) << command;
  }
  EXPECT_LT(result.peak_bytes, kMostBytes) << command;
}

void ExpectRefusedAndNothingWritten(std::vector<std::string> arguments,
                                    const std::string& flag, int code,
                                    const std::vector<std::string>& says) {
  const std::string directory = Scratch();
  arguments.push_back(flag);
  arguments.push_back(directory + "/out");
  ExpectRefused(arguments, code, says);
  EXPECT_TRUE(std::filesystem::is_empty(directory))
      << absl::StrJoin(FilesBelow(directory), " ");
}

std::vector<Damage> AllDamages(const std::string& good) {
  std::string random(4096, '\0'), flipped = good;
  std::minstd_rand bytes(7);
  for (char& byte : random) byte = static_cast<char>(bytes() >> 8);
  flipped[good.size() / 2] ^= 1;
  return {{"missing", "", true},
          {"empty", ""},
          {"blank", "\n \n"},
          {"half", good.substr(0, good.size() / 2)},
          {"all_but_the_last_byte", good.substr(0, good.size() - 1)},
          {"random", random},
          {"one_flipped_bit", flipped}};
}

std::vector<std::string> FilesBelow(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory)) {
    files.push_back(
        std::filesystem::relative(entry.path(), directory).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace halftone
