// Every target of targets.h by our own mutations; formats_fuzz_test.cc and the
// like look closer at what single formats hold.
#include "tests/fuzz/targets.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/fuzz/fuzz.h"

namespace halftone {
namespace {

// Of each seed: some seconds in all.
constexpr int kMutations = 200;

class TargetsTest : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(TargetsTest, AreReadOrRefused) {
  const FuzzTarget& target = GetParam();
  for (const std::string& seed : target.seeds()) {
    Fuzz(seed, target.text, target.code, kMutations, target.read);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, TargetsTest,
                         ::testing::ValuesIn(FuzzTargets().begin(),
                                             FuzzTargets().end()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(Targets, AreFoundByName) {
  EXPECT_GE(FuzzTargets().size(), 16u);
  EXPECT_EQ(FindFuzzTarget("npz")->name, "npz");
  EXPECT_EQ(FindFuzzTarget("nothing"), nullptr);
}

}  // namespace
}  // namespace halftone
