#include "runtime/profile/roofline.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"

namespace halftone {
namespace runtime {
namespace {

constexpr double kLaunch = 2e-6;

TuningTable MeasuredOn(const std::string& device) {
  TuningTable table;
  table.device_description = device;
  table.rates = {20'000'000'000, 900'000'000'000, 450'000'000'000};
  return table;
}

Roofline H100() {
  return *RooflineOf(*FindTarget("sm_90"), "NVIDIA H100 80GB HBM3",
                     TuningTable());
}

// Of a step through a kernel of that name; none: a copy.
Predicted PredictedOn(const Roofline& roofline, const StepCost& cost,
                      const char* kernel = nullptr) {
  kernels::Candidate candidate;
  Step step;
  step.kind = Step::Kind::kCopy;
  if (kernel != nullptr) {
    candidate.name = kernel;
    step.candidate = &candidate;
  }
  return Predict(step, cost, roofline);
}

TEST(RooflineOf, IsThatOfADataSheetOrOfATable) {
  const Target& cpu = CpuTarget();
  const Target& gpu = *FindTarget("sm_90");
  EXPECT_FALSE(RooflineOf(cpu, "", TuningTable()).has_value());
  const auto measured = RooflineOf(cpu, "", MeasuredOn("AMD EPYC"));
  ASSERT_TRUE(measured.has_value());
  EXPECT_TRUE(measured->measured);
  EXPECT_EQ(measured->device.name, "AMD EPYC");
  EXPECT_EQ(measured->device.memory, 20e9);
  // A table of another kind of device says nothing.
  EXPECT_FALSE(RooflineOf(cpu, "", MeasuredOn("NVIDIA H100")).has_value());
  const auto sheet =
      RooflineOf(gpu, gpu.cudnn_device, MeasuredOn("NVIDIA A100-SXM4-40GB"));
  ASSERT_TRUE(sheet.has_value());
  EXPECT_FALSE(sheet->measured);
  EXPECT_EQ(sheet->device.name, "H100");
  const auto timed = RooflineOf(gpu, gpu.cudnn_device, MeasuredOn("H200"));
  EXPECT_TRUE(timed->measured);
  EXPECT_EQ(timed->device.link, 450e9);  // of the data sheet
}

// 2.7 of 3.35 TB/s where the kernel is ours, 80 % where it is a library's.
TEST(Predict, BoundByBytes) {
  StepCost cost;
  cost.bytes = 2.7e9;
  Predicted own = PredictedOn(H100(), cost, "vector");
  EXPECT_NEAR(own.seconds, 1e-3 + kLaunch, 1e-12);
  EXPECT_EQ(own.bound, Bound::kBytes);
  EXPECT_NEAR(PredictedOn(H100(), cost).seconds, own.seconds, 1e-12);
  cost.bytes = 0.8 * 3.35e9;
  EXPECT_NEAR(PredictedOn(H100(), cost, "cudnn_any").seconds, 1e-3 + kLaunch,
              1e-12);
}

// Libraries multiply in 16 bit, our own kernels in f32.
TEST(Predict, BoundByFlops) {
  StepCost cost;
  cost.bytes = 1e6;
  cost.flops = 0.8 * 989e9;
  cost.low = true;
  const Predicted low = PredictedOn(H100(), cost, "cublaslt");
  EXPECT_NEAR(low.seconds, 1e-3 + kLaunch, 1e-12);
  EXPECT_EQ(low.bound, Bound::kFlops);
  EXPECT_NEAR(PredictedOn(H100(), cost, "tiles").seconds,
              1e-3 * 989 / 67 + kLaunch, 1e-12);
  cost.low = false;
  EXPECT_NEAR(PredictedOn(H100(), cost, "cublaslt").seconds,
              1e-3 * 989 / 67 + kLaunch, 1e-12);
}

TEST(Predict, BoundByTheLaunch) {
  StepCost cost;
  cost.bytes = 2.7e5;  // 0.1 us
  const Predicted tiny = PredictedOn(H100(), cost, "vector");
  EXPECT_NEAR(tiny.seconds, 1e-7 + kLaunch, 1e-12);
  EXPECT_EQ(tiny.bound, Bound::kLaunch);
  EXPECT_EQ(Name(tiny.bound), "launch");
}

TEST(Predict, BoundByTheLink) {
  StepCost cost;
  cost.bytes = 1e6;
  cost.sent = 450e6;
  const Predicted sum = PredictedOn(H100(), cost);
  EXPECT_NEAR(sum.seconds, 1e-3 + kLaunch, 1e-12);
  EXPECT_EQ(sum.bound, Bound::kLink);
}

// What was measured is what kernels reach, and a call costs a CPU nothing.
TEST(Predict, ByMeasuredRates) {
  const Roofline cpu = *RooflineOf(CpuTarget(), "", MeasuredOn("AMD EPYC"));
  StepCost cost;
  cost.bytes = 20e6;
  EXPECT_NEAR(PredictedOn(cpu, cost, "direct").seconds, 1e-3, 1e-12);
  cost.flops = 1.8e9;
  cost.low = true;
  EXPECT_NEAR(PredictedOn(cpu, cost, "onednn").seconds, 2e-3, 1e-12);
  EXPECT_NEAR(PredictedOn(cpu, cost, "packed").seconds, 2e-3, 1e-12);
  EXPECT_NEAR(PredictedOn(cpu, cost, "direct").seconds, 4e-3, 1e-12);
  Roofline f32_alone = cpu;
  f32_alone.device.low = 0;
  EXPECT_NEAR(PredictedOn(f32_alone, cost, "onednn").seconds, 4e-3, 1e-12);
  EXPECT_NEAR(LeastSeconds(cost, f32_alone.device), 4e-3, 1e-12);
  // Without instructions for 16 bits it is not slower than f32.
  Roofline slow_low = cpu;
  slow_low.device.low = slow_low.device.f32 / 2;
  EXPECT_NEAR(PredictedOn(slow_low, cost, "onednn").seconds, 4e-3, 1e-12);
  EXPECT_NEAR(LeastSeconds(cost, slow_low.device), 4e-3, 1e-12);
}

// B is 2 samples: c is 2 x 4 x 8 x 8 f32, 2,048 bytes.
constexpr char kProgram[] = R"(
program "p" dim B
cell w : f32[4,3,3,3] parameter trainable applied init=constant(1)
entry train {
  feed x : f32[B,3,8,8]
  feed g : f32[B,4,8,8]
  conv: conv2d(Input=x, Filter=w) -> (Output=c : f32[B,4,8,8]) {paddings=[1,1]}   forward
  twice: elementwise_mul(X=c, Y=c) -> (Out=t : f32[B,4,8,8])   forward
  flat: reshape(X=t) -> (Out=f : f32[B,256]) {shape=[0,-1]}   forward
  last: relu(X=f) -> (Out=l : f32[B,256])   forward
  cw: conv2d_grad_filter(Input=x, OutputGrad=g) -> (FilterGrad=dw : f32[4,3,3,3]) {paddings=[1,1], filter_hw=[3,3]}   backward
  sum: all_reduce(X=[dw]) -> (Out=[dw.reduced : f32[4,3,3,3]]) {of="gradient"}   communicate
  chain: fusion(X=[l, l]) -> (Out=[y : f32[B,256]]) {pattern="elementwise_chain"}   forward body {
    feed a : f32[B,256]
    feed b : f32[B,256]
    m: elementwise_mul(X=a, Y=b) -> (Out=m : f32[B,256])   forward
    r: relu(X=m) -> (Out=r : f32[B,256])   forward
    return r
  }
  result y = y
  result dw.reduced = dw.reduced
}
)";

class PlanPredictionTest : public ::testing::Test {
 protected:
  Plan PlanOn(int ranks) {
    PlanRequest request;
    request.program = program_.get();
    request.entry = "train";
    request.symbols[0] = 2;
    request.bind.world_size = ranks;
    auto plan = MakePlan(request, kernels::Kernels(), LayOutState(*program_),
                         TuningTable());
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }
  static std::map<std::string, StepCost> ByName(const Plan& plan) {
    std::map<std::string, StepCost> costs;
    const std::vector<StepCost> all = CostsOf(plan);
    for (size_t i = 0; i < all.size(); ++i) costs[plan.steps[i].name] = all[i];
    return costs;
  }

  std::unique_ptr<Program> program_ = *Parse(kProgram, "test.ht");
};

TEST_F(PlanPredictionTest, BytesAreThoseThatAKernelMoves) {
  auto costs = ByName(PlanOn(1));
  // Images, filter and output: 2 x 3 x 64, 108 and 2 x 4 x 64 floats.
  EXPECT_EQ(costs["conv"].bytes, 4 * (384 + 108 + 512));
  EXPECT_EQ(costs["twice"].bytes, 2 * 2048);  // c once, t
  EXPECT_EQ(costs.count("flat"), 0u);         // a view, which is no step
  EXPECT_EQ(costs["last"].bytes, 2 * 2048);
  EXPECT_EQ(costs["last"].launches, 1);
  // A fusion reads and writes what it takes and gives, nothing between.
  EXPECT_EQ(costs["chain"].bytes, 2 * 2048);
  EXPECT_EQ(costs.count("sum"), 0u);  // over one rank
  costs = ByName(PlanOn(4));
  EXPECT_EQ(costs["sum"].bytes, 512);  // the group, padded
  EXPECT_EQ(costs["sum"].sent, 2 * 3 * 512 / 4);
  EXPECT_EQ(costs["sum"].launches, 1);
}

TEST_F(PlanPredictionTest, SaysWhatRunsAStepAndOnWhat) {
  const Plan plan = PlanOn(4);
  for (const Step& step : plan.steps) {
    if (step.name == "chain") {
      EXPECT_THAT(KernelOf(step), ::testing::StartsWith("elementwise_chain "));
      EXPECT_EQ(ShapeOf(plan, step), "f32[2,256]");
    }
    if (step.name == "sum") {
      EXPECT_EQ(KernelOf(step), "all_reduce");
      EXPECT_EQ(ShapeOf(plan, step), "");
    }
  }
}

// What is sent runs beside what is computed, as far as nobody waits for it.
TEST(PredictPlan, StreamsRunBesideEachOther) {
  Plan plan;
  plan.world_size = 2;
  const auto add = [&plan](Step::Kind kind, int64_t bytes) -> Step& {
    Step step;
    step.kind = kind;
    step.outputs = {{ArenaKind::kTemporary, 0, bytes}};
    plan.steps.push_back(step);
    return plan.steps.back();
  };
  constexpr int64_t kMs = 2'700'000'000;  // of our own kernels
  add(Step::Kind::kZero, kMs).records = 0;
  Step& sum = add(Step::Kind::kAllReduce, 450'000'000);  // 1 ms, too
  sum.stream = StreamKind::kCommunicate;
  sum.waits = {0};
  sum.records = 1;
  add(Step::Kind::kZero, 3 * kMs);
  PlanPrediction prediction = PredictPlan(plan, H100());
  EXPECT_NEAR(prediction.seconds, 4e-3 + 2 * kLaunch, 1e-9);
  plan.steps[2].waits = {1};
  prediction = PredictPlan(plan, H100());
  EXPECT_NEAR(prediction.seconds, 5e-3 + 3 * kLaunch, 1e-9);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
