#include "graph/targets/target.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Targets, AreInTheOrderOfTheirAge) {
  std::set<std::string> names;
  int capability = -1;
  for (const Target& target : Targets()) {
    EXPECT_TRUE(names.insert(target.name).second) << target.name;
    EXPECT_EQ(FindTarget(target.name), &target);
    EXPECT_LT(capability, target.compute_capability) << target.name;
    capability = target.compute_capability;
    EXPECT_EQ(target.is_gpu(), target.compute_capability > 0) << target.name;
    EXPECT_EQ(target.is_gpu(), !target.cudnn_device.empty()) << target.name;
  }
  EXPECT_EQ(CpuTarget().name, "cpu");
  EXPECT_FALSE(CpuTarget().is_gpu());
}

TEST(Targets, OfADeviceIsTheNewestThatItRuns) {
  EXPECT_EQ(GpuTargetFor(70), nullptr);
  EXPECT_EQ(GpuTargetFor(80)->name, "sm_80");
  EXPECT_EQ(GpuTargetFor(90)->name, "sm_90");
  const Target* older = nullptr;
  for (const Target& target : Targets()) {
    if (!target.is_gpu()) continue;
    EXPECT_EQ(GpuTargetFor(target.compute_capability - 1), older);
    EXPECT_EQ(GpuTargetFor(target.compute_capability), &target);
    older = &target;
  }
  ASSERT_NE(older, nullptr);
  EXPECT_EQ(GpuTargetFor(older->compute_capability + 1000), older);
}

TEST(Targets, UnknownNamesAreToldWhatThereIs) {
  std::vector<std::string> gpus;
  for (const Target& target : Targets()) {
    if (target.is_gpu()) gpus.push_back(target.name);
  }
  EXPECT_EQ(GpuTargetNames(), absl::StrJoin(gpus, ", "));
  const auto unknown = TargetNamed("sm_91", "--target ");
  EXPECT_THAT(
      std::string(unknown.status().message()),
      AllOf(StartsWith("--target sm_91: no kernels"),
            HasSubstr("nearest: sm_90"),
            HasSubstr(absl::StrCat("known: cpu, ", GpuTargetNames(), " ("))));
  EXPECT_EQ(*TargetNamed("cpu", ""), &CpuTarget());
}

TEST(Targets, RatesAreThoseOfTheMostSpecificName) {
  const DeviceRates* h200 = FindDeviceRates("NVIDIA H200, 139.8 GiB, sm_90");
  ASSERT_NE(h200, nullptr);
  EXPECT_EQ(h200->memory, 4.8e12);
  EXPECT_EQ(FindDeviceRates("NVIDIA A100-SXM4-80GB")->memory, 2.039e12);
  EXPECT_EQ(FindDeviceRates("NVIDIA A100-SXM4-40GB")->memory, 1.555e12);
  EXPECT_EQ(FindDeviceRates("AMD EPYC"), nullptr);
  EXPECT_EQ(h200->link, 450e9);
  EXPECT_EQ(ChannelMultipleOfAny(), 8);
  for (const Target& target : Targets()) {
    EXPECT_EQ(ChannelMultipleOfAny() % target.channel_multiple, 0)
        << target.name;
  }
}

}  // namespace
}  // namespace halftone
