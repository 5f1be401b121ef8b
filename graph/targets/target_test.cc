#include "graph/targets/target.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

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
  EXPECT_EQ(GpuTargetFor(75), nullptr);
  EXPECT_EQ(GpuTargetFor(80)->name, "sm_80");
  EXPECT_EQ(GpuTargetFor(86)->name, "sm_80");
  EXPECT_EQ(GpuTargetFor(89)->name, "sm_80");
  EXPECT_EQ(GpuTargetFor(90)->name, "sm_90");
  EXPECT_EQ(GpuTargetFor(120)->name, "sm_90");
}

TEST(Targets, UnknownNamesAreToldWhatThereIs) {
  const auto unknown = TargetNamed("sm_91", "--target ");
  EXPECT_THAT(
      std::string(unknown.status().message()),
      ::testing::AllOf(::testing::StartsWith("--target sm_91: no kernels"),
                       ::testing::HasSubstr("nearest: sm_90"),
                       ::testing::HasSubstr("known: cpu, sm_80, sm_90")));
  EXPECT_EQ(*TargetNamed("cpu", ""), &CpuTarget());
  EXPECT_EQ(GpuTargetNames(), "sm_80, sm_90");
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
}

}  // namespace
}  // namespace halftone
