// Runs every case under tests/golden against the pass that its folder names.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "passes/pipelines.h"
#include "tests/golden/golden_case.h"

namespace halftone {
namespace {

constexpr char kRoot[] = "tests/golden";

// Paths from the top, sorted.
std::vector<std::string> CaseFiles() {
  std::vector<std::string> files;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(kRoot)) {
    if (file.path().extension() == ".txt") files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "insert-casts" of "tests/golden/insert_casts/typical.txt".
std::string PassOf(const std::string& file) {
  const std::string folder =
      std::filesystem::path(file).parent_path().filename();
  return absl::StrReplaceAll(folder, {{"_", "-"}});
}

bool Matches(const std::string& expect, const std::string& found) {
  if (!absl::StartsWith(expect, "error: ")) return expect == found;
  const absl::string_view part =
      absl::StripSuffix(absl::StripPrefix(expect, "error: "), "\n");
  return absl::StartsWith(found, "error: ") && absl::StrContains(found, part);
}

// The expectation, rewritten in the source tree.
void Update(const GoldenCase& golden, const std::string& file,
            const std::string& found) {
  const char* tree = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  ASSERT_NE(tree, nullptr) << "update with `bazel run`";
  const absl::Status written =
      WriteFileAtomically(absl::StrCat(tree, "/", file),
                          absl::StrCat(golden.head, "# ---- expect\n", found));
  ASSERT_TRUE(written.ok()) << written;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, PassDoesAsExpected) {
  const std::string& file = GetParam();
  const absl::StatusOr<std::string> content = ReadFile(file);
  ASSERT_TRUE(content.ok()) << content.status();
  const absl::StatusOr<GoldenCase> golden = ParseGoldenCase(*content, file);
  ASSERT_TRUE(golden.ok()) << golden.status();
  const std::string found = RunGoldenCase(*golden, PassOf(file), file);
  if (Matches(golden->expect, found)) return;
  if (std::getenv("HT_UPDATE_GOLDEN") != nullptr) {
    Update(*golden, file, found);
    return;
  }
  EXPECT_EQ(golden->expect, found);
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(sizeof(kRoot));
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, testing::ValuesIn(CaseFiles()),
                         TestName);

TEST(GoldenCasesTest, EveryPassHasCases) {
  std::map<std::string, int> cases;
  for (const std::string& file : CaseFiles()) ++cases[PassOf(file)];
  for (const passes::PassStep& step : passes::AllSteps()) {
    EXPECT_GE(cases[step.name], 3)
        << "write three cases of " << step.name
        << " (tests/golden/README.md); HT_UPDATE_GOLDEN=1 adds what they "
           "expect";
  }
}

}  // namespace
}  // namespace halftone
