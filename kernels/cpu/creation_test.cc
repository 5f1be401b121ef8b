// Random initial values and dropout: distributions, independence of layout,
// threads and ranks.
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "graph/base/philox.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

double Mean(const Values& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}
double Deviation(const Values& x) {
  const double mean = Mean(x);
  double sum = 0;
  for (double v : x) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

Values Init(const char* op, const Ints& shape, int64_t stream,
            int threads = 1) {
  KernelRun run(op);
  run.In("Seed", I64({}, {42})).Attr("shape", shape).Attr("stream", stream);
  return run.Threads(threads).Get("Out");
}

TEST(InitTest, ConstantOfAnyType) {
  KernelRun f16("fill_constant");
  f16.Attr("shape", Ints{3}).Attr("value", 0.5).Attr("dtype", DType::kF16);
  EXPECT_THAT(f16.Get("Out"), ElementsAre(0.5, 0.5, 0.5));
  // 2^53 + 1 is no f64.
  KernelRun digits("fill_constant");
  digits.Attr("dtype", DType::kI64).Attr("str_value", "9007199254740993");
  int64_t value = 0;
  std::memcpy(&value, digits.Bytes("Out").data(), sizeof(value));
  EXPECT_EQ(value, 9007199254740993);
  KernelRun i64("fill_constant");
  i64.Attr("value", 7.0).Attr("dtype", DType::kI64);
  EXPECT_THAT(i64.Get("Out"), ElementsAre(7));
}

TEST(InitTest, UniformIsTheDrawOfTheElement) {
  KernelRun run("init_uniform");
  run.In("Seed", I64({}, {42})).Attr("shape", Ints{9});
  run.Attr("low", -2.0).Attr("high", 2.0).Attr("stream", int64_t{5});
  const Values found = run.Get("Out");
  for (uint32_t i = 0; i < 9; ++i) {
    const Philox4 draw = PhiloxDraw(PhiloxKey(42, 5), 0, 0, i / 4);
    EXPECT_EQ(found[i], -2.0f + 4.0f * ToUniform(draw.x[i % 4]));
  }
}

// Of 200,000 draws a mean lies within 4 / sqrt(200000) = 0.009 deviations.
TEST(InitTest, Moments) {
  const Values uniform = Init("init_uniform", {200000}, 1);
  EXPECT_NEAR(Mean(uniform), 0.5, 0.003);
  EXPECT_NEAR(Deviation(uniform), std::sqrt(1 / 12.0), 0.003);
  const Values normal = Init("init_normal", {200000}, 1);
  EXPECT_NEAR(Mean(normal), 0, 0.009);
  EXPECT_NEAR(Deviation(normal), 1, 0.009);
  const Values truncated = Init("init_truncated_normal", {200000}, 1);
  // Between -2 and 2 the normal distribution has deviation 0.8796.
  EXPECT_NEAR(Deviation(truncated), 0.8796, 0.009);
  for (double v : truncated) ASSERT_LE(std::fabs(v), 2);
}

TEST(InitTest, ThreadsDoNotMatterAndStreamsDo) {
  for (const char* op :
       {"init_uniform", "init_normal", "init_truncated_normal"}) {
    EXPECT_EQ(Init(op, {5000}, 1), Init(op, {5000}, 1, 4)) << op;
    EXPECT_NE(Init(op, {5000}, 1), Init(op, {5000}, 2)) << op;
  }
}

TEST(ElementCountTest, CountsAsF32) {
  KernelRun run("element_count");
  run.In("X", F16({3, 5}, {}));
  EXPECT_EQ(run.Value("Out"), 15);
}

// ---- Dropout.

Values Dropout(const char* op, DType dtype, int64_t rows, int64_t columns,
               int64_t first_sample, double p, int threads = 1) {
  KernelRun run(op);
  const bool grad = op == std::string("dropout_grad");
  run.In(grad ? "OutGrad" : "X",
         {dtype, {rows, columns}, Values(rows * columns, 1)});
  run.In("Seed", I64({}, {9})).In("Step", I64({}, {3}));
  run.In("FirstSample", I64({}, {static_cast<double>(first_sample)}));
  run.Attr("p", p).Attr("stream", int64_t{77}).Threads(threads);
  return run.Get(grad ? "XGrad" : "Out");
}

TEST(DropoutTest, KeepsWhatTheDrawSays) {
  const Values found = Dropout("dropout", DType::kF32, 3, 7, 10, 0.25);
  for (int64_t n = 0; n < 3; ++n) {
    for (uint32_t i = 0; i < 7; ++i) {
      const Philox4 draw = PhiloxDraw(PhiloxKey(9, 77), 3, 10 + n, i / 4);
      const bool keep = ToUniform(draw.x[i % 4]) >= 0.25f;
      EXPECT_EQ(found[n * 7 + i], keep ? static_cast<float>(1 / 0.75) : 0);
    }
  }
}

TEST(DropoutTest, SamplesKeepTheirMaskOnAnyRank) {
  const Values all = Dropout("dropout", DType::kF16, 6, 2500, 0, 0.5, 2);
  const Values last = Dropout("dropout", DType::kF16, 2, 2500, 4, 0.5);
  EXPECT_EQ(Values(all.begin() + 4 * 2500, all.end()), last);
}

TEST(DropoutTest, GradientHasTheSameMask) {
  EXPECT_EQ(Dropout("dropout", DType::kF32, 5, 333, 7, 0.3),
            Dropout("dropout_grad", DType::kF32, 5, 333, 7, 0.3));
}

TEST(DropoutTest, Shares) {
  const Values found = Dropout("dropout", DType::kF32, 100, 1000, 0, 0.3);
  // 4 deviations of the mean of 10^5 draws of deviation sqrt(0.3 / 0.7).
  EXPECT_NEAR(Mean(found), 1, 0.009);
  EXPECT_THAT(Dropout("dropout", DType::kF32, 4, 9, 0, 0), Each(1));
}

// ---- Images.

TEST(ImageNormalizeTest, PerChannelAndAllTypes) {
  for (DType in : {DType::kU8, DType::kI32, DType::kF32}) {
    KernelRun run("image_normalize");
    run.In("X", {in, {1, 2, 1, 2}, {0, 255, 10, 20}});
    run.Attr("mean", Values{5, 10}).Attr("std", Values{2, 10});
    run.Bind("TOut", DType::kF16);
    EXPECT_THAT(run.Get("Out"), ElementsAre(-2.5, 125, 0, 1));
  }
  KernelRun scalar("image_normalize");
  scalar.In("X", {DType::kU8, {1, 2, 1, 1}, {51, 255}});
  scalar.Attr("std", Values{255});
  EXPECT_THAT(scalar.Get("Out"), ElementsAre(0.2f, 1));
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
