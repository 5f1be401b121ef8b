#include "graph/strategy/dgc_stages.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<std::pair<int64_t, double>> Stages(int64_t begin, int64_t steps,
                                               std::vector<double> sparsity) {
  proto::Dgc dgc;
  dgc.set_rampup_begin_step(begin);
  dgc.set_rampup_step(steps);
  for (double s : sparsity) dgc.add_sparsity(s);
  std::vector<std::pair<int64_t, double>> stages;
  for (const DgcStage& stage : DgcStages(dgc)) {
    stages.emplace_back(stage.first_step, stage.sparsity);
  }
  return stages;
}

TEST(DgcStages, OfTheDefaultIsOne) {
  EXPECT_THAT(Stages(0, 1, {}), ElementsAre(Pair(1, 0.999)));
}

TEST(DgcStages, BeginWithWholeGradients) {
  EXPECT_THAT(Stages(5, 1, {0.9}), ElementsAre(Pair(1, -1), Pair(6, 0.9)));
}

// Paddle: steps 0 1 2 | 3 4 | 5 6 ... of 3 over 7, after 2.
TEST(DgcStages, TakeTurns) {
  EXPECT_THAT(
      Stages(2, 7, {0.5, 0.75, 0.9}),
      ElementsAre(Pair(1, -1), Pair(3, 0.5), Pair(6, 0.75), Pair(8, 0.9)));
}

// int(step * 4 / 2): 0, 2, then the last.
TEST(DgcStages, WithoutAStepAreLeftOut) {
  EXPECT_THAT(Stages(0, 2, {0.1, 0.2, 0.3, 0.4}),
              ElementsAre(Pair(1, 0.1), Pair(2, 0.3), Pair(3, 0.4)));
}

}  // namespace
}  // namespace halftone
