// The derived pages of docs/ are what the product says of itself today.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "tests/docs/docs.h"

namespace halftone {
namespace docs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Derived {
  const char* name;
  std::string (*make)();
};

// ":7: kept "...", now "..."".
std::string FirstDifference(absl::string_view kept, absl::string_view made) {
  const std::vector<std::string> old_lines = absl::StrSplit(kept, '\n');
  const std::vector<std::string> new_lines = absl::StrSplit(made, '\n');
  size_t i = 0;
  while (i < old_lines.size() && i < new_lines.size() &&
         old_lines[i] == new_lines[i]) {
    ++i;
  }
  const auto line = [i](const std::vector<std::string>& lines) {
    return i < lines.size() ? lines[i] : "its end";
  };
  return absl::StrCat(":", i + 1, ":\nkept  ", line(old_lines), "\nnow   ",
                      line(new_lines));
}

class DerivedPage : public testing::TestWithParam<Derived> {};

TEST_P(DerivedPage, IsFresh) {
  const std::string file = absl::StrCat("docs/", GetParam().name, ".md");
  const std::string made = GetParam().make();
  const auto kept = ReadFile(file);
  if (kept.ok() && *kept == made) return;
  const char* tree = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (std::getenv("HT_UPDATE_GOLDEN") != nullptr && tree != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(tree, "/", file), made).ok());
    return;
  }
  ADD_FAILURE() << file << FirstDifference(kept.ok() ? *kept : "", made)
                << "\nto write it anew:\n"
                << "HT_UPDATE_GOLDEN=1 bazel run //tests/docs:derived_test";
}

TEST_P(DerivedPage, NamesNoPlaceOnThisMachine) {
  const std::string made = GetParam().make();
  for (const char* place : {"/root", "/home", "/tmp", "/work", "execroot"}) {
    EXPECT_THAT(made, Not(HasSubstr(place)));
  }
}

INSTANTIATE_TEST_SUITE_P(Docs, DerivedPage,
                         testing::Values(Derived{"cli", CliPage},
                                         Derived{"ops", OpsPage},
                                         Derived{"strategy", StrategyPage}),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace docs
}  // namespace halftone
