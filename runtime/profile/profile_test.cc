#include "runtime/profile/profile.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using ::testing::DoubleNear;

// One op of each class. B is 2 samples.
constexpr char kProgram[] = R"(
program "p" dim B
cell w : f32[4,3,3,3] parameter trainable applied init=constant(1)
cell v : f32[8,5] parameter trainable applied init=constant(1)
cell s : f32[4] parameter trainable applied init=constant(1)
entry train {
  feed x : f32[B,3,8,8]
  feed r : f32[B,8]
  feed g : f32[B,4,8,8]
  feed h : f32[B,5]
  feed n : f32[]
  conv: conv2d(Input=x, Filter=w) -> (Output=c : f32[B,4,8,8]) {paddings=[1,1]}   forward
  fc: matmul(X=r, Y=v) -> (Out=f : f32[B,5])   forward
  act: relu(X=c) -> (Out=a : f32[B,4,8,8])   forward
  low: cast(X=a) -> (Out=l : f16[B,4,8,8]) {to=f16}   forward
  stats: channel_stats(X=c) -> (Mean=t : f32[4], Variance=u : f32[4], Count=k : f32[])   forward
  cx: conv2d_grad_input(OutputGrad=g, Filter=w) -> (InputGrad=dx : f32[B,3,8,8]) {paddings=[1,1], input_hw=[8,8]}   backward
  cw: conv2d_grad_filter(Input=x, OutputGrad=g) -> (FilterGrad=dw : f32[4,3,3,3]) {paddings=[1,1], filter_hw=[3,3]}   backward
  fx: matmul(X=h, Y=v) -> (Out=dr : f32[B,8]) {trans_y=true}   backward
  fw: matmul(X=r, Y=h) -> (Out=dv : f32[8,5]) {trans_x=true}   backward
  sum: all_reduce(X=[dw]) -> (Out=[dw.reduced : f32[4,3,3,3]]) {of="gradient"}   communicate
  up: scale(X=n) -> (Out=m : f32[]) {scale=0.25}   optimize
  result m = m
  result dx = dx
  result dr = dr
  result dv = dv
  result l = l
  result f = f
  result t = t
  result dw.reduced = dw.reduced
}
)";

class ProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto parsed = Parse(kProgram, "test.ht");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    program_ = *std::move(parsed);
    PlanRequest request;
    request.program = program_.get();
    request.entry = "train";
    request.symbols[0] = 2;
    request.bind.world_size = 2;
    auto plan = MakePlan(request, kernels::Kernels(), LayOutState(*program_),
                         TuningTable());
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
  }

  std::unique_ptr<Program> program_;
  Plan plan_;
};

TEST_F(ProfileTest, EveryStepHasItsClass) {
  const std::vector<StepCost> costs = CostsOf(plan_);
  ASSERT_EQ(costs.size(), plan_.steps.size());
  std::map<std::string, std::string> classes;
  std::map<std::string, double> flops;
  for (size_t i = 0; i < costs.size(); ++i) {
    classes[plan_.steps[i].name] = std::string(Name(costs[i].cost_class));
    flops[plan_.steps[i].name] = costs[i].flops;
  }
  EXPECT_EQ(classes["conv"], "conv forward");
  EXPECT_EQ(classes["fc"], "conv forward");
  EXPECT_EQ(classes["act"], "element-wise");
  EXPECT_EQ(classes["low"], "cast");
  EXPECT_EQ(classes["stats"], "norm");
  EXPECT_EQ(classes["cx"], "dgrad");
  EXPECT_EQ(classes["fx"], "dgrad");
  EXPECT_EQ(classes["cw"], "wgrad");
  EXPECT_EQ(classes["fw"], "wgrad");
  EXPECT_EQ(classes["sum"], "exposed collective");
  EXPECT_EQ(classes["up"], "update");
  // 2 N K P Q C R S, three times the same; 2 M N K, likewise.
  for (const char* conv : {"conv", "cx", "cw"}) {
    EXPECT_EQ(flops[conv], 2.0 * 2 * 4 * 8 * 8 * 3 * 3 * 3) << conv;
  }
  for (const char* product : {"fc", "fx", "fw"}) {
    EXPECT_EQ(flops[product], 2.0 * 2 * 8 * 5) << product;
  }
  EXPECT_EQ(flops["act"], 0);
}

// Spans of one step: 2 ms of feeds, then a millisecond for each kernel.
std::vector<Executor::Span> Spans(size_t steps) {
  std::vector<Executor::Span> spans;
  for (size_t i = 0; i < steps; ++i) {
    spans.push_back(
        {2.0 + static_cast<double>(i), 3.0 + static_cast<double>(i)});
  }
  return spans;
}

TEST_F(ProfileTest, ClassesSumToTheStep) {
  Profile profile(plan_, "device", nullptr, TuningTable());
  const auto spans = Spans(plan_.steps.size());
  const double total = static_cast<double>(spans.size()) + 7;
  for (int step = 0; step < Profile::kWarmUp + 3; ++step) {
    profile.Add(spans, {100.0 * step, total, /*waited=*/1});
  }
  EXPECT_EQ(profile.steps(), 3);
  EXPECT_DOUBLE_EQ(profile.step_ms(), total);
  double sum = 0;
  for (int c = 0; c < kCostClasses; ++c) {
    sum += profile.ms(static_cast<CostClass>(c));
  }
  EXPECT_THAT(sum, DoubleNear(total, 1e-9));
  EXPECT_DOUBLE_EQ(profile.ms(CostClass::kForward), 2);
  EXPECT_DOUBLE_EQ(profile.ms(CostClass::kInputWait), 3);
  EXPECT_DOUBLE_EQ(profile.ms(CostClass::kIdle), 4);
}

// By what it took, not by where it stands; nothing is known of the device.
TEST_F(ProfileTest, TheDearestComeFirst) {
  Profile profile(plan_, "device", nullptr, TuningTable());
  auto spans = Spans(plan_.steps.size());
  spans.back().end += 2;
  for (int step = 0; step < Profile::kWarmUp + 2; ++step) {
    profile.Add(spans, {0, 100, 0});
  }
  const ProfileTable table = profile.Table();
  EXPECT_EQ(table.dearest[0].name, plan_.steps.back().name);
  EXPECT_EQ(table.dearest[0].ms, 3);
  EXPECT_EQ(table.dearest[1].name, plan_.steps[0].name);
  EXPECT_FALSE(table.dearest[0].predicted_ms.has_value());
  EXPECT_EQ(table.dearest[0].bound, "");
  EXPECT_EQ(table.dearest[0].hint, "");
}

TEST_F(ProfileTest, CollectivesCountWhereNothingElseRuns) {
  Profile profile(plan_, "device", nullptr, TuningTable());
  auto spans = Spans(plan_.steps.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    // Beside half of the step before it and all of the one before that.
    if (plan_.steps[i].name == "sum") spans[i].begin -= 1.5;
  }
  for (int step = 0; step < Profile::kWarmUp + 1; ++step) {
    profile.Add(spans, {0, 100, 0});
  }
  EXPECT_DOUBLE_EQ(profile.ms(CostClass::kCollective), 1);
}

TEST_F(ProfileTest, ReportsAreComplete) {
  Profile profile(plan_, "NVIDIA H100 80GB HBM3", FindTarget("sm_90"),
                  TuningTable());
  EXPECT_EQ(profile.Table().steps, 0);
  for (int step = 0; step < 9; ++step) {
    profile.Add(Spans(plan_.steps.size()), {100.0 * step, 50, 1});
  }
  const ProfileTable table = profile.Table();
  EXPECT_EQ(table.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(table.steps, 7);
  EXPECT_EQ(table.step_ms, 50);
  ASSERT_EQ(table.rows.size(), size_t{kCostClasses});
  EXPECT_EQ(table.rows[0].name, "conv forward");
  EXPECT_EQ(table.rows[0].ms, 2);
  EXPECT_EQ(table.rows[0].kernels, 2);
  EXPECT_GT(table.rows[0].roofline_ms.value(), 0);
  EXPECT_FALSE(table.measured);
  // All take a millisecond: the first ones stay first.
  ASSERT_EQ(table.dearest.size(), Profile::kDearest);
  const ProfileTable::Op& first = table.dearest[0];
  EXPECT_EQ(first.name, "conv");
  EXPECT_THAT(first.kernel, ::testing::StartsWith("conv2d "));
  EXPECT_EQ(first.shape, "f32[2,4,8,8]");
  EXPECT_EQ(first.ms, 1);
  EXPECT_EQ(first.bytes, 4 * (384 + 108 + 512));
  EXPECT_EQ(first.bound, "launch");
  EXPECT_NEAR(*first.predicted_ms, 2e-3, 1e-4);
  EXPECT_LT(*first.roofline_ms, *first.predicted_ms);
  EXPECT_TRUE(
      Profile(plan_, "device", nullptr, TuningTable()).Table().dearest.empty());

  const auto trace = nlohmann::json::parse(TraceJson(profile.Trace(), 3));
  int complete = 0;
  for (const auto& event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 3);
    if (event["ph"] != "X") continue;
    ++complete;
    if (event["name"] == "conv") {
      EXPECT_EQ(event["cat"], "conv forward");
      EXPECT_EQ(event["dur"], 1000);
    }
  }
  EXPECT_EQ(complete, 7 * static_cast<int>(plan_.steps.size() + 1));
}

TEST_F(ProfileTest, TracesTheLatestSteps) {
  Profile profile(plan_, "device", nullptr, TuningTable());
  const int most = static_cast<int>(Profile::kMostTraced);
  for (int step = 0; step < Profile::kWarmUp + most + 3; ++step) {
    profile.Add(Spans(plan_.steps.size()), {100.0 * step, 50, 1});
  }
  const std::vector<TraceEvent> trace = profile.Trace();
  ASSERT_EQ(trace.size(), most * (plan_.steps.size() + 1));
  EXPECT_EQ(trace[plan_.steps.size()].name, "step 6");
}

// 432 bytes of gradient, in a group padded to 512.
TEST_F(ProfileTest, CollectivesSendWhatARingDoes) {
  const auto sent = [this](int world_size) {
    plan_.world_size = world_size;
    double sum = 0;
    for (const StepCost& cost : CostsOf(plan_)) sum += cost.sent;
    return sum;
  };
  EXPECT_EQ(sent(1), 0);
  EXPECT_EQ(sent(4), 2 * 3 * 512 / 4);
}

TEST(RooflineTest, IsThatOfTheSlowerOfTheTwo) {
  const DeviceRates h100 = *FindDeviceRates("NVIDIA H100 80GB HBM3");
  StepCost cost;
  cost.bytes = 3.35e9;
  EXPECT_DOUBLE_EQ(LeastSeconds(cost, h100), 1e-3);
  cost.flops = 989e10;
  cost.low = true;
  EXPECT_DOUBLE_EQ(LeastSeconds(cost, h100), 1e-2);
  cost.low = false;
  EXPECT_DOUBLE_EQ(LeastSeconds(cost, h100), 989e10 / 67e12);
  cost.sent = 450e9;
  EXPECT_DOUBLE_EQ(LeastSeconds(cost, h100), 1);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
