#include "graph/targets/reach.h"

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(Reach, OfEachTargetIsAShare) {
  for (const Target& target : Targets()) {
    const Reach& reach = ReachOn(target);
    for (double share : {reach.flops, reach.library_memory, reach.own_memory}) {
      EXPECT_GT(share, 0) << target.name;
      EXPECT_LE(share, 1) << target.name;
    }
    EXPECT_FALSE(reach.libraries.empty()) << target.name;
  }
  EXPECT_GT(ReachOn(*FindTarget("sm_90")).launch, 0);
}

TEST(Reach, KnowsLibrariesByTheirKernels) {
  const Reach& gpu = ReachOn(*FindTarget("sm_80"));
  EXPECT_TRUE(gpu.OfLibrary("cudnn"));
  EXPECT_TRUE(gpu.OfLibrary("cudnn_any"));
  EXPECT_FALSE(gpu.OfLibrary("direct"));
  EXPECT_TRUE(ReachOn(CpuTarget()).OfLibrary("onednn"));
}

}  // namespace
}  // namespace halftone
