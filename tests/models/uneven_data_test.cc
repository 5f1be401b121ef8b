// Samples that ranks cannot share evenly, down to ranks that have none while
// others go on: training neither hangs nor counts differently from one rank.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
dist { sync_batch_norm: true }
lr { base: 0.005 constant: true }
train { batch_size: 8 epochs: 3 seed: 3 }
)";

std::string Model() {
  return absl::StrCat(
      R"(name: "uneven"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "label" dtype: I64 dims: [-1] }
)",
      Param("w1", "6, 12"), Param("s", "12"), Param("c", "12"),
      Param("w2", "12, 4"), Param("b2", "4"), Matmul("x", "w1", "", "h"),
      BatchNorm("h", 12, "s", "c", "y"), Unary("tanh", "y", "t"),
      Matmul("t", "w2", "b2", "logits"), CrossEntropy());
}

Outcome Train(const std::vector<std::string>& overrides, int samples,
              int ranks) {
  return TrainText(Model(), kStrategy, overrides,
                   absl::StrCat("synthetic:", samples), ranks);
}

// Sums of f32 in another order, over up to 36 steps.
constexpr double kRounding = 1e-4;

void ExpectAsOneRank(const Outcome& one, const Outcome& run) {
  ASSERT_TRUE(one.status.ok()) << one.status;
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(one.summary["steps_applied"], run.summary["steps_applied"]);
  EXPECT_EQ(run.summary["steps_skipped"], 0);
  ASSERT_EQ(one.steps.size(), run.steps.size());
  for (size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_NEAR(one.steps[i]["loss"], run.steps[i]["loss"], kRounding) << i;
  }
  ASSERT_EQ(one.evals.size(), run.evals.size());
  EXPECT_EQ(one.summary["metrics"]["top1"]["total"],
            run.summary["metrics"]["top1"]["total"]);
}

class UnevenData : public ::testing::TestWithParam<std::vector<std::string>> {};

// Of 33 samples in batches of 8 the last has one: three of four ranks have run
// out. Of 35 one of four has. Batches of 3 leave a rank without in each
// step.
TEST_P(UnevenData, IsThatOfOneRank) {
  for (const int samples : {33, 35}) {
    for (const char* batch : {"train.batch_size=8", "train.batch_size=3"}) {
      SCOPED_TRACE(absl::StrCat(samples, " ", batch));
      std::vector<std::string> overrides = GetParam();
      overrides.push_back(batch);
      const Outcome one = Train(overrides, samples, 1);
      for (const int ranks : {2, 4}) {
        SCOPED_TRACE(ranks);
        ExpectAsOneRank(one, Train(overrides, samples, ranks));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, UnevenData,
                         ::testing::Values(std::vector<std::string>{},
                                           std::vector<std::string>{
                                               "dist.sharding.stage=1"}));

// Which samples a norm sees together depends on the ranks there: it ends as one
// rank does, after as many steps.
TEST(UnevenMicroBatches, EndTogether) {
  const std::vector<std::string> merged = {"dist.gradient_merge.k_steps=2"};
  const Outcome one = Train(merged, 33, 1), four = Train(merged, 33, 4);
  ASSERT_TRUE(one.status.ok()) << one.status;
  ASSERT_TRUE(four.status.ok()) << four.status;
  EXPECT_EQ(one.summary["steps_applied"], 15);
  EXPECT_EQ(four.summary["steps_applied"], 15);
  EXPECT_EQ(four.summary["steps_skipped"], 0);
}

// The other tails leave no rank without: 8 samples a step, in all steps.
TEST(UnevenTails, ArePaddedOrDropped) {
  for (const auto& [tail, steps] :
       {std::pair("pad", 15), std::pair("drop", 12)}) {
    const Outcome run = Train({absl::StrCat("train.tail=", tail)}, 33, 4);
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.summary["steps_applied"], steps) << tail;
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
