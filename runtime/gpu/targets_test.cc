#include "runtime/gpu/targets.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/gpu/gpu_interface.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(KernelKeys, OfTheCpuAreTheBinarys) {
  EXPECT_EQ(*KernelKeysOf("cpu"), kernels::Kernels().Keys());
  EXPECT_EQ(*KernelsOf("cpu"), &kernels::Kernels());
}

TEST(KernelKeys, OfNoSuchTarget) {
  const auto keys = KernelKeysOf("sm_70");
  EXPECT_EQ(ExitCodeOf(keys.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(keys.status().message()),
              AllOf(HasSubstr("--target sm_70"), HasSubstr("known: cpu")));
}

// There is no list beside a test.
TEST(KernelKeys, OfABuildWithoutGpuCode) {
  const auto keys = KernelKeysOf("sm_90");
  EXPECT_EQ(ExitCodeOf(keys.status()), ExitCode::kDevice);
  EXPECT_THAT(std::string(keys.status().message()),
              AllOf(HasSubstr("--target sm_90"), HasSubstr(kGpuKernelList),
                    HasSubstr("//tools:all")));
}

TEST(KernelList, ThereAndBack) {
  const auto keys =
      ParseKernelList(KernelListText({"relu(f16)@row_major", "b"}), "list");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_THAT(*keys, ElementsAre("relu(f16)@row_major", "b"));
}

TEST(KernelList, OfAnotherBuild) {
  std::string text = KernelListText({"a"});
  const std::string stamp = GpuStamp();
  text.replace(text.find(stamp), stamp.size(), "0123456789abcdef");
  for (const std::string& bad : {text, std::string("a\nb\n"), std::string()}) {
    const auto keys = ParseKernelList(bad, "the/list");
    EXPECT_EQ(ExitCodeOf(keys.status()), ExitCode::kDevice);
    EXPECT_THAT(std::string(keys.status().message()),
                AllOf(HasSubstr("the/list:1"), HasSubstr("build")));
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
