#include "runtime/gpu/choose_gpus.h"

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Environment Visible(const char* list) {
  return {{"CUDA_VISIBLE_DEVICES", list}};
}

TEST(OrdinalsOf, AreTheIdsThemselvesWhereAllDevicesAreVisible) {
  EXPECT_THAT(*OrdinalsOf({3, 1, 1}, {}), ElementsAre(3, 1, 1));
}

TEST(OrdinalsOf, CountAmongTheVisibleOnes) {
  EXPECT_THAT(*OrdinalsOf({5, 2}, Visible("2, 5,7")), ElementsAre(1, 0));
}

TEST(OrdinalsOf, RefusesWhatIsNotVisible) {
  for (const char* list : {"0,1", "0,-1,3", "GPU-8932f937"}) {
    const auto ordinals = OrdinalsOf({3}, Visible(list));
    ASSERT_FALSE(ordinals.ok()) << list;
    EXPECT_EQ(ExitCodeOf(ordinals.status()), ExitCode::kUsage);
    EXPECT_THAT(std::string(ordinals.status().message()),
                HasSubstr("3 is not in CUDA_VISIBLE_DEVICES="));
  }
}

TEST(OrdinalsOf, SaysThatAllAreHidden) {
  for (const char* list : {"", "-1", "-1,3"}) {
    const auto ordinals = OrdinalsOf({3}, Visible(list));
    EXPECT_EQ(ExitCodeOf(ordinals.status()), ExitCode::kDevice);
    EXPECT_THAT(std::string(ordinals.status().message()),
                AllOf(HasSubstr("--gpus 3"), HasSubstr("hides all GPUs")));
  }
}

RankPlacement Local(int rank, int ranks) {
  RankPlacement place;
  place.rank = 10 + rank;
  place.local_rank = rank;
  place.local_world_size = ranks;
  return place;
}

TEST(OrdinalOf, IsTheLaunchersChoice) {
  RankPlacement place = Local(3, 4);
  place.device = 0;
  EXPECT_EQ(*OrdinalOf(place, Visible("6")), 0);
}

TEST(OrdinalOf, IsTheLocalRank) {
  EXPECT_EQ(*OrdinalOf(Local(3, 4), {}), 3);
  EXPECT_EQ(*OrdinalOf(Local(1, 2), Visible("6,4")), 1);
}

TEST(OrdinalOf, IsTheOnlyOneThatTheLauncherLeft) {
  EXPECT_EQ(*OrdinalOf(Local(3, 4), Visible("GPU-8932f937")), 0);
}

TEST(OrdinalOf, RefusesMoreRanksThanDevices) {
  for (const char* list : {"0,1,2", ""}) {
    const auto ordinal = OrdinalOf(Local(3, 4), Visible(list));
    ASSERT_FALSE(ordinal.ok()) << list;
    EXPECT_EQ(ExitCodeOf(ordinal.status()), ExitCode::kDevice);
    EXPECT_THAT(std::string(ordinal.status().message()),
                HasSubstr("rank 13: it is local rank 3 of 4"));
  }
}

TEST(CountVisible, IsWhatTheVariableLeaves) {
  EXPECT_EQ(CountVisible(4, {}), 4);
  EXPECT_EQ(CountVisible(4, Visible("3,1")), 2);
  EXPECT_EQ(CountVisible(1, Visible("3,1")), 1);
  EXPECT_EQ(CountVisible(4, Visible("")), 0);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
