// Masked means: the loss and the steps of one device, however the mask falls
// on ranks, empty ones and tails; a mask without a 1 is no NaN anywhere.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace runtime {
namespace {

// `keep` is 0 or 1 per sample; LOSS makes `loss` of ce and mask.
constexpr char kModel[] = R"(name: "masked"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "label" dtype: I64 dims: [-1] }
feed { name: "keep" dtype: BOOL dims: [-1] }
param { name: "w" dims: [6, 4] init { uniform { bound: 0.4 } } }
param { name: "b" dims: [4] init { constant: 0 } }
param { name: "heat" dims: [] init { constant: 1 } }
op { type: "cast" in { slot: "X" var: "keep" } out { slot: "Out" var: "mask" } attr { name: "to" s: "f32" } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } in { slot: "Bias" var: "b" }
     out { slot: "Out" var: "scores" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "scores" }
     in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
LOSS
loss { var: "loss" mean_over: "OVER" mask: "mask" }
)";

// `out` = the sum (or mean) of what is kept by that of the mask.
std::string Quotient(const std::string& reduction, const std::string& out) {
  return Binary("elementwise_mul", "ce", "mask", "kept") +
         Unary(reduction, "kept", "sum") + Unary(reduction, "mask", "n") +
         Binary("elementwise_div", "sum", "n", out);
}

// What a model may write for the same mean.
struct Formula {
  const char* name;
  std::string ops, over;
};

std::vector<Formula> Formulas() {
  return {
      {"SumBySum", Quotient("reduce_sum", "loss"), "ce"},
      {"MeanByMean", Quotient("mean", "loss"), "kept"},
      {"WeightsFirst",
       Unary("reduce_sum", "mask", "n") +
           Binary("elementwise_div", "mask", "n", "weights") +
           Binary("elementwise_mul", "ce", "weights", "kept") +
           Unary("reduce_sum", "kept", "loss"),
       "mask"},
      {"WithAParameter",
       Quotient("reduce_sum", "cold") +
           Binary("elementwise_mul", "cold", "heat", "loss"),
       "label"},
  };
}

std::string Model(const Formula& formula) {
  return absl::StrReplaceAll(kModel,
                             {{"LOSS", formula.ops}, {"OVER", formula.over}});
}

constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.2 constant: true }
train { batch_size: 4 epochs: 2 seed: 3 }
)";

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

StepsResult MustRun(const CompiledModel& model, int ranks, int64_t batch) {
  StepsSpec spec;
  spec.ranks = ranks;
  spec.batch = batch;
  spec.steps = 24;
  spec.data = "synthetic:21";  // with a tail of one sample, so empty ranks
  spec.learning_rate = 0.2f;
  auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

class MaskedMean : public ::testing::TestWithParam<int> {};

// The tolerance is that of f32 sums in another order, over 24 steps.
TEST_P(MaskedMean, RanksEqualOne) {
  const Formula formula = Formulas()[GetParam()];
  const auto model = CompileText(Model(formula), kStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int64_t batch : {4, 2}) {  // of 2, some masks have no 1 at all
    const StepsResult one = MustRun(*model, 1, batch);
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, batch ", batch));
      const StepsResult many = MustRun(*model, ranks, batch);
      ASSERT_EQ(many.losses.size(), one.losses.size());
      for (size_t s = 0; s < one.losses.size(); ++s) {
        EXPECT_FALSE(many.rejected[s]) << s;
        if (std::isnan(one.losses[s])) {  // 0 of 0: nothing was counted
          EXPECT_TRUE(std::isnan(many.losses[s])) << s;
        } else {
          EXPECT_NEAR(many.losses[s], one.losses[s],
                      2e-5 * (1 + std::abs(one.losses[s])))
              << s;
        }
      }
      for (const auto& [name, bytes] : one.cells[0]) {
        if (name[0] == '@') continue;
        const std::vector<float> a = Floats(bytes);
        const std::vector<float> b = Floats(many.cells[0].at(name));
        for (size_t i = 0; i < a.size(); ++i) {
          EXPECT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(a[i])))
              << name << " " << i;
        }
      }
    }
  }
}

// Low precision: nothing is rejected, and all ranks stay equal.
TEST_P(MaskedMean, NoStepIsSkippedAtAnyLevel) {
  const Formula formula = Formulas()[GetParam()];
  for (const char* level : {"O1", "O2", "O3"}) {
    const auto model = CompileText(Model(formula), kStrategy,
                                   {absl::StrCat("amp.level=", level),
                                    "amp.loss_scaling.init_loss_scaling=128"});
    ASSERT_TRUE(model.ok()) << model.status();
    const StepsResult run = MustRun(*model, 2, 2);
    EXPECT_THAT(run.rejected, testing::Each(false)) << level;
    EXPECT_TRUE(run.cells[0] == run.cells[1]) << level;
  }
}

TEST_P(MaskedMean, EvalIsThatOfOneDevice) {
  const Formula formula = Formulas()[GetParam()];
  const auto model = CompileText(Model(formula), kStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:21", FreshDirectory());
  config.strategy.mutable_train()->set_batch_size(2);
  const Trained trained = TrainOn(*model, config, 2);
  ASSERT_TRUE(trained.status.ok()) << trained.status;
  EXPECT_EQ(Summary(config.out)["steps_skipped"], 0);
  config.strategy.mutable_train()->set_batch_size(21);
  const auto one = EvaluateOn(*model, config, 1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(std::isfinite(one->loss));
  config.strategy.mutable_train()->set_batch_size(2);
  for (const int ranks : {1, 2, 3}) {
    const auto many = EvaluateOn(*model, config, ranks);
    ASSERT_TRUE(many.ok()) << many.status();
    EXPECT_NEAR(many->loss, one->loss, 1e-5 * (1 + std::abs(one->loss)))
        << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(Formulas, MaskedMean, ::testing::Range(0, 4),
                         [](const ::testing::TestParamInfo<int>& info) {
                           return std::string(Formulas()[info.param].name);
                         });

// ---- A loss that is a mean over a value without samples.

constexpr char kNoSamples[] = R"(name: "scalar"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [6, 4] init { uniform { bound: 0.4 } } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "scores" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "scores" }
     in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "OVER" }
)";

// It says no more than that the loss is a mean of samples: the same bits as
// over the samples' own losses, tails and empty ranks included.
TEST(MeanOverNoSamples, CountsSamples) {
  const auto compile = [](const std::string& over) {
    return CompileText(absl::StrReplaceAll(kNoSamples, {{"OVER", over}}),
                       kStrategy);
  };
  const auto scalar = compile("loss"), samples = compile("ce");
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  ASSERT_TRUE(samples.ok()) << samples.status();
  for (const int ranks : {1, 3}) {
    const StepsResult a = MustRun(*scalar, ranks, 4);
    const StepsResult b = MustRun(*samples, ranks, 4);
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_TRUE(a.cells == b.cells);
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
