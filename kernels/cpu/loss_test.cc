// Softmax, cross entropy, reductions, counts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/math.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Dims = std::vector<int64_t>;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

// exp(x - max) / sum of the rows of length c.
Values ExactSoftmax(const Values& x, int64_t c) {
  Values out(x.size());
  for (size_t r = 0; r < x.size(); r += c) {
    const double largest = *std::max_element(&x[r], &x[r] + c);
    double sum = 0;
    for (int64_t i = 0; i < c; ++i) sum += std::exp(x[r + i] - largest);
    for (int64_t i = 0; i < c; ++i) {
      out[r + i] = std::exp(x[r + i] - largest) / sum;
    }
  }
  return out;
}

// Labels 0, 7, 14 ... within [0, c).
Values Labels(int64_t rows, int64_t c) {
  Values labels(rows);
  for (int64_t r = 0; r < rows; ++r) labels[r] = static_cast<double>(r * 7 % c);
  return labels;
}

class RowLength : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Lengths, RowLength,
                         ::testing::Values(1, 3, 10, 16, 17, 28, 47, 63, 64,
                                           100, 1000, 1024, 1025, 5000));

// 1e-6: a few roundings of f32 at values up to 1.
TEST_P(RowLength, Softmax) {
  const int64_t c = GetParam(), rows = 37;
  Values x = Draws(rows * c, -9, 9);
  for (double& v : x) v = static_cast<float>(v);
  KernelRun run("softmax");
  run.In("X", F32({rows, c}, x)).Threads(3);
  EXPECT_THAT(run.Get("Out"), Pointwise(DoubleNear(1e-6), ExactSoftmax(x, c)));
}

// 2e-5: roundings of f32 in a sum of up to 5000 products.
TEST_P(RowLength, SoftmaxGrad) {
  const int64_t c = GetParam(), rows = 37;
  const Values y = ExactSoftmax(Draws(rows * c, -9, 9), c);
  const Values grad = Draws(rows * c, -2, 2);
  Values expected(y.size());
  for (size_t r = 0; r < y.size(); r += c) {
    double sum = 0;
    for (int64_t i = 0; i < c; ++i) sum += y[r + i] * grad[r + i];
    for (int64_t i = 0; i < c; ++i) {
      expected[r + i] = y[r + i] * (grad[r + i] - sum);
    }
  }
  KernelRun run("softmax_grad");
  run.In("Out", F32({rows, c}, y)).In("OutGrad", F32({rows, c}, grad));
  run.Threads(3);
  EXPECT_THAT(run.Get("XGrad"), Pointwise(DoubleNear(2e-5), expected));
}

// Rows are worked on as they lie in memory, the last ones by way of a buffer;
// an output may take an input's place. Exponentials of results of 16 bits take
// fewer steps, less than a sixteenth of a unit of f16 off; else the bits are
// f32's, rounded.
TEST_P(RowLength, SixteenBitsAreThoseOfF32Rounded) {
  const int64_t c = GetParam(), rows = 37;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    const Values x = Rounded(dtype, Draws(rows * c, -9, 0));
    const Values grad = Rounded(dtype, Draws(rows * c, -2, 2));
    for (const char* op :
         {"softmax", "log_softmax", "softmax_grad", "log_softmax_grad"}) {
      const bool backward = std::string(op).find("_grad") != std::string::npos;
      const char* in = backward ? "Out" : "X";
      const char* out = backward ? "XGrad" : "Out";
      KernelRun whole(op), there(op);
      for (KernelRun* run : {&whole, &there}) {
        const DType type = run == &whole ? DType::kF32 : dtype;
        run->In(in, {type, {rows, c}, x});
        if (backward) run->In("OutGrad", {type, {rows, c}, grad});
        run->Threads(3);
      }
      there.Alias(out, in);
      const Values exact = whole.Get(out);
      if (dtype == DType::kF32 || std::string(op) == "softmax_grad") {
        EXPECT_EQ(there.Get(out), Rounded(dtype, exact)) << op << Name(dtype);
        continue;
      }
      const Values made = there.Get(out);
      const double place = dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
      const double least = dtype == DType::kF16 ? 0x1p-25 : 0;
      for (size_t i = 0; i < exact.size(); ++i) {
        // What is subtracted from a gradient is p times a sum.
        const double sum = op == std::string("log_softmax_grad") ? 2.0 * c : 0;
        ASSERT_NEAR(made[i], exact[i],
                    place * 1.07 * std::abs(exact[i]) + least +
                        0x1p-16 * sum * std::exp(x[i]))
            << op << " " << Name(dtype);
      }
    }
    KernelRun whole("softmax_with_cross_entropy");
    KernelRun low("softmax_with_cross_entropy");
    whole.In("Logits", F32({rows, c}, x));
    low.In("Logits", {dtype, {rows, c}, x});
    for (KernelRun* run : {&whole, &low}) {
      run->In("Label", I64({rows, 1}, Labels(rows, c)));
    }
    EXPECT_EQ(low.Get("Loss"), whole.Get("Loss")) << Name(dtype);
  }
}

// Of labels that are classes, ignored or soft; the gradient may take the
// logits' place.
TEST_P(RowLength, CrossEntropyOfSixteenBits) {
  const int64_t c = GetParam(), rows = 37;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const double place = dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
    const Values x = Rounded(dtype, Draws(rows * c, -9, 0));
    const Values shares = Rounded(dtype, ExactSoftmax(Draws(rows * c), c));
    Values classes = Labels(rows, c);
    classes[5] = classes[36] = -100;
    for (const bool probabilities : {false, true}) {
      const Values& logits = probabilities ? shares : x;
      for (const DType label : {DType::kI64, DType::kF32, dtype}) {
        const bool soft = label != DType::kI64;
        const auto bind = [&](KernelRun& run, DType type) {
          run.In("Logits", {type, {rows, c}, logits});
          const DType labels = type == DType::kF32 && soft ? type : label;
          run.In("Label", soft ? Tensor{labels, {rows, c}, shares}
                               : I64({rows, 1}, classes));
          run.Attr("soft_label", soft).Attr("use_softmax", !probabilities);
          run.Threads(2);
        };
        KernelRun loss("softmax_with_cross_entropy");
        KernelRun low_loss("softmax_with_cross_entropy");
        bind(loss, DType::kF32), bind(low_loss, dtype);
        EXPECT_EQ(low_loss.Get("Loss"), loss.Get("Loss")) << Name(label);

        KernelRun grad("softmax_with_cross_entropy_grad");
        KernelRun low_grad("softmax_with_cross_entropy_grad");
        bind(grad, DType::kF32), bind(low_grad, dtype);
        for (KernelRun* run : {&grad, &low_grad}) {
          run->In("LossGrad", F32({rows, 1}, Values(rows, 0.5)));
        }
        low_grad.Alias("LogitsGrad", "Logits");
        const Values exact = grad.Get("LogitsGrad");
        const Values made = low_grad.Get("LogitsGrad");
        for (size_t i = 0; i < exact.size(); ++i) {
          ASSERT_NEAR(made[i], exact[i],
                      place * 1.07 * std::abs(exact[i]) + 0x1p-17)
              << Name(dtype) << Name(label) << probabilities << i;
        }
      }
    }
  }
}

// Of a class that is nearly certain: what the others add to 1 counts.
TEST(SoftmaxTest, CertainClassesOfSixteenBits) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const double other : {-6.0, -9.0, -12.0}) {
      const double rest = std::exp(other), log = -std::log1p(rest);
      const double place = dtype == DType::kF16 ? 0x1p-10 : 0x1p-7;
      const auto near = [&](double x) {
        return DoubleNear(x, std::abs(x) * place + 3e-7);
      };
      KernelRun logs("log_softmax");
      logs.In("X", {dtype, {1, 2}, {0, other}});
      const Values out = logs.Get("Out");
      EXPECT_THAT(out, ElementsAre(near(log), near(other + log)));

      KernelRun loss("softmax_with_cross_entropy_grad");
      loss.In("Logits", {dtype, {1, 2}, {0, other}});
      loss.In("Label", I64({1, 1}, {0})).In("LossGrad", F32({1, 1}, {1}));
      const double p = rest / (1 + rest);
      EXPECT_THAT(loss.Get("LogitsGrad"), ElementsAre(near(-p), near(p)));
    }
  }
}

// Small numbers, of which all sums are exact.
TEST(SumTest, OfSixteenBits) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int64_t n : {5, 32, 47, 1031, 9001}) {
      Values x(n);
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        x[i] = static_cast<double>(i % 3 - 1 + (i == n - 1 ? 7 : 0));
        sum += x[i];
      }
      KernelRun run("reduce_sum");
      run.In("X", {dtype, {n}, x});
      EXPECT_THAT(run.Get("Out"), ElementsAre(sum)) << n;
    }
  }
}

TEST_P(RowLength, CrossEntropyAndGradient) {
  const int64_t c = GetParam(), rows = 37;
  Values x = Draws(rows * c, -9, 9);
  for (double& v : x) v = static_cast<float>(v);
  const Values labels = Labels(rows, c);
  const Values softmax = ExactSoftmax(x, c);
  Values losses(rows), grads = softmax;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * c + static_cast<int64_t>(labels[r]);
    losses[r] = -std::log(softmax[at]);
    grads[at] -= 1;
    for (int64_t i = 0; i < c; ++i) grads[r * c + i] *= 0.5;
  }
  KernelRun loss("softmax_with_cross_entropy");
  loss.In("Logits", F32({rows, c}, x)).In("Label", I64({rows, 1}, labels));
  // Losses up to 27: 27 * 2^-23 is 3e-6.
  EXPECT_THAT(loss.Threads(2).Get("Loss"), Pointwise(DoubleNear(6e-6), losses));
  KernelRun grad("softmax_with_cross_entropy_grad");
  grad.In("Logits", F32({rows, c}, x)).In("Label", I64({rows}, labels));
  grad.In("LossGrad", F32({rows}, Values(rows, 0.5)));
  EXPECT_THAT(grad.Threads(2).Get("LogitsGrad"),
              Pointwise(DoubleNear(1e-6), grads));
}

TEST(SoftmaxTest, AlongAnInnerAxisEqualsTransposed) {
  const Values x = Draws(2 * 5 * 3);
  KernelRun run("softmax");
  run.In("X", F32({2, 5, 3}, x)).Attr("axis", int64_t{1});
  const Values found = run.Get("Out");
  for (int n = 0; n < 2; ++n) {
    for (int i = 0; i < 3; ++i) {
      Values row;
      for (int c = 0; c < 5; ++c) row.push_back(x[n * 15 + c * 3 + i]);
      const Values expected = ExactSoftmax(row, 5);
      for (int c = 0; c < 5; ++c) {
        EXPECT_NEAR(found[n * 15 + c * 3 + i], expected[c], 1e-6);
      }
    }
  }
}

// Short rows and long ones, a few and many, whatever is behind them.
TEST(SoftmaxTest, ExponentialsAreThoseOfEachElementAddedInOrder) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr int64_t kMostRows = 37;
  const auto equal = [](float a, float b) {
    return a == b || (std::isnan(a) && std::isnan(b));
  };
  for (int64_t length = 1; length < 100; ++length) {
    const int64_t padded = (length + kVector - 1) / kVector * kVector;
    const Values draws = Draws(kMostRows * length, -9, 9);
    std::vector<float> x(draws.begin(), draws.end());
    x[length / 2] = std::nanf("");
    x[2 * length] = -kInfinity;
    x.resize(x.size() + 2 * kVector, kInfinity);
    for (int64_t rows : {int64_t{1}, int64_t{8}, kMostRows}) {
      std::vector<float> e(rows * padded + kVector), largest(rows), sums(rows),
          sums_alone(rows);
      const StoredElements view = {DType::kF32, x.data()};
      ExpRows(view, rows, length, padded, nullptr, largest.data(),
              sums_alone.data());
      ExpRows(view, rows, length, padded, e.data(), largest.data(),
              sums.data());
      for (int64_t r = 0; r < rows; ++r) {
        const float* const row = &x[r * length];
        float most = -kInfinity;
        for (int64_t i = 0; i < length; ++i) {
          most = row[i] > most ? row[i] : most;
        }
        ASSERT_EQ(largest[r], most) << length << " " << r;
        const auto exp = [&](int64_t i) {
          return functors::ExpUpTo0(row[i] - most);
        };
        for (int64_t i = 0; i < length; ++i) {
          ASSERT_TRUE(equal(e[r * padded + i], exp(i))) << length << " " << r;
        }
        const float sum = SumOf(length, exp);
        ASSERT_TRUE(equal(sums[r], sum)) << length << " " << r;
        ASSERT_TRUE(equal(sums_alone[r], sum)) << length << " " << r;
      }
    }
  }
}

TEST(SoftmaxTest, GradientIsOutTimesGradMinusDot) {
  KernelRun run("softmax_grad");
  run.In("Out", F32({1, 2}, {0.25, 0.75})).In("OutGrad", F32({1, 2}, {4, 8}));
  // dot = 1 + 6 = 7
  EXPECT_THAT(run.Get("XGrad"), ElementsAre(-0.75, 0.75));
}

TEST(SoftmaxTest, LowInGivesF32Out) {
  KernelRun run("softmax");
  run.In("X", F16({1, 3}, {0, 0, 0})).Bind("TOut", DType::kF32);
  EXPECT_THAT(run.Get("Out"), Each(static_cast<double>(1.0f / 3.0f)));
}

TEST(CrossEntropyTest, IgnoredAndInvalidLabels) {
  const Values x = {1, 2, 3, 1, 2, 3, 1, 2, 3};
  KernelRun loss("softmax_with_cross_entropy");
  loss.In("Logits", F16({3, 3}, x)).In("Label", I64({3}, {-100, 3, -1}));
  const Values losses = loss.Get("Loss");
  EXPECT_EQ(losses[0], 0);
  EXPECT_TRUE(std::isnan(losses[1]));
  EXPECT_TRUE(std::isnan(losses[2]));
  KernelRun grad("softmax_with_cross_entropy_grad");
  grad.In("Logits", F16({3, 3}, x)).In("Label", I64({3}, {-100, 3, -1}));
  grad.In("LossGrad", F32({3}, {1, 1, 1}));
  const Values grads = grad.Get("LogitsGrad");
  EXPECT_EQ(grads[2], 0);
  EXPECT_TRUE(std::isnan(grads[3]));
}

TEST(CrossEntropyTest, NaNLogitsGiveNaN) {
  KernelRun loss("softmax_with_cross_entropy");
  loss.In("Logits", F32({1, 3}, {1, std::nan(""), 3}))
      .In("Label", I64({1}, {0}));
  EXPECT_TRUE(std::isnan(loss.Value("Loss")));
}

// ---- Reductions.

TEST(MeanTest, OfLossesOverTwoDevices) {
  // The published example: 0.3, 0.2, 0.8 is 0.433, not 0.525.
  KernelRun run("mean");
  run.In("X", F32({3}, {0.3, 0.2, 0.8}));
  EXPECT_FLOAT_EQ(run.Value("Out"), 1.3f / 3);
}

TEST(MeanTest, OfNothingIsZero) {
  KernelRun run("mean");
  run.In("X", F32({0, 3}, {}));
  EXPECT_EQ(run.Value("Out"), 0);
}

// Sums of integers, so that f32 is exact.
void ExpectSums(const Dims& dims, const Ints& axes, int threads) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  Values x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(i % 11) - 4;
  std::vector<bool> reduced(dims.size(), axes.empty());
  for (int64_t a : axes) reduced[a < 0 ? a + dims.size() : a] = true;
  int64_t kept = 1;
  for (size_t d = 0; d < dims.size(); ++d) kept *= reduced[d] ? 1 : dims[d];
  Values expected(kept);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
      if (!reduced[d]) {
        at += rest % dims[d] * stride;
        stride *= dims[d];
      }
      rest /= dims[d];
    }
    expected[at] += x[i];
  }
  KernelRun run("reduce_sum");
  run.In("X", F16(dims, x)).Bind("TOut", DType::kF32).Attr("dim", axes);
  EXPECT_EQ(run.Threads(threads).Get("Out"), expected)
      << ::testing::PrintToString(dims) << ::testing::PrintToString(axes);
}

TEST(ReduceTest, AnyAxes) {
  for (int threads : {1, 3}) {
    ExpectSums({70000}, {}, threads);
    ExpectSums({}, {}, threads);
    ExpectSums({64, 10}, {0}, threads);
    ExpectSums({64, 10}, {-1}, threads);
    ExpectSums({1000, 3000}, {0}, threads);
    ExpectSums({1000, 30}, {0}, threads);
    ExpectSums({3, 20000}, {1}, threads);
    ExpectSums({4, 16, 14, 14}, {0, 2, 3}, threads);
    ExpectSums({4, 16, 14, 14}, {1}, threads);
    ExpectSums({4, 16, 14, 14}, {1, 3}, threads);
    ExpectSums({300, 5, 7, 3}, {0, 2}, threads);
    ExpectSums({2, 1, 3}, {1}, threads);
    ExpectSums({0, 3}, {0}, threads);
    ExpectSums({3, 0}, {1}, threads);
    ExpectSums({3, 0}, {0}, threads);
  }
}

TEST(ReduceTest, BitsDoNotDependOnThreads) {
  for (const Ints& axes : {Ints{}, Ints{0}, Ints{1}}) {
    std::string bytes[2];
    for (int threads : {1, 4}) {
      KernelRun run("reduce_mean");
      run.In("X", F32({700, 301}, Draws(700 * 301))).Attr("dim", axes);
      bytes[threads / 4] = run.Threads(threads).Bytes("Out");
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  }
}

TEST(ReduceTest, LongSumsAreAccurate) {
  // 10^6 summands of about 0.5: one running f32 sum would be off by 1e-4.
  const int64_t n = 1000000;
  Values x = Draws(n, 0, 1);
  for (double& v : x) v = static_cast<float>(v);
  const double exact = std::accumulate(x.begin(), x.end(), 0.0);
  for (const Dims& dims : {Dims{n}, Dims{n, 1}, Dims{1000, 1000}}) {
    KernelRun run("reduce_sum");
    run.In("X", F32(dims, x));
    EXPECT_NEAR(run.Value("Out") / exact, 1, 1e-6);
  }
}

// Runs are folded in one go: nothing at their ends is left out.
TEST(ReduceTest, ExtremesAnywhereOfLongRuns) {
  const int64_t n = 20003;
  for (const int64_t at : {0, 31, 32, 1023, 1024, 8191, 8192, 16384, 20002}) {
    for (const double value : {3.0, std::nan("")}) {
      Values x(n, -1), minus(n, 1);
      x[at] = value;
      minus[at] = -value;
      KernelRun greatest("reduce_max"), least("reduce_min");
      greatest.In("X", F32({n}, x));
      least.In("X", F32({n}, minus));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(greatest.Value("Out"))) << at;
        EXPECT_TRUE(std::isnan(least.Value("Out"))) << at;
      } else {
        EXPECT_EQ(greatest.Value("Out"), value) << at;
        EXPECT_EQ(least.Value("Out"), -value) << at;
      }
    }
  }
}

TEST(BroadcastLikeTest, GradientsOfReductions) {
  KernelRun sum("broadcast_like");
  sum.In("X", F32({2}, {1, 2})).In("Like", F16({2, 3}, {}));
  sum.Attr("dim", Ints{1}).Bind("TOut", DType::kF16);
  EXPECT_THAT(sum.Get("Out"), ElementsAre(1, 1, 1, 2, 2, 2));
  KernelRun kept("broadcast_like");
  kept.In("X", F32({1, 3}, {3, 6, 9})).In("Like", F32({2, 3}, {}));
  kept.Attr("dim", Ints{0}).Attr("keep_dim", true).Attr("mean", true);
  EXPECT_THAT(kept.Get("Out"), ElementsAre(1.5, 3, 4.5, 1.5, 3, 4.5));
  KernelRun mean("broadcast_like");
  mean.In("X", Scalar(6)).In("Like", F32({2, 3}, {})).Attr("mean", true);
  EXPECT_THAT(mean.Get("Out"), Each(1));
}

// ---- Counts.

TEST(CorrectCountTest, TiesGoToTheLowerIndex) {
  const Values x = {1, 3, 3, /**/ 1, 3, 3, /**/ 5, 0, 0};
  KernelRun top1("correct_count");
  top1.In("X", F32({3, 3}, x)).In("Label", I64({3}, {1, 2, 0}));
  EXPECT_EQ(top1.Value("Out"), 2);
  KernelRun top2("correct_count");
  top2.In("X", F32({3, 3}, x)).In("Label", I64({3, 1}, {1, 2, 2}));
  EXPECT_EQ(top2.Attr("k", int64_t{2}).Value("Out"), 2);
}

TEST(CorrectCountTest, NaNsAndBadLabelsAreWrong) {
  const double nan = std::nan("");
  KernelRun run("correct_count");
  run.In("X", F32({4, 2}, {nan, nan, nan, 1, 2, 1, 2, 1}));
  run.In("Label", I64({4}, {0, 1, 7, -100}));
  EXPECT_EQ(run.Value("Out"), 0);
}

TEST(TopKTest, DescendingWithNaNsFirst) {
  const double nan = std::nan("");
  KernelRun run("top_k");
  run.In("X", F16({2, 4}, {1, 5, 5, 2, 0, -1, nan, 3}));
  run.Attr("k", int64_t{3});
  EXPECT_THAT(run.Get("Indices"), ElementsAre(1, 2, 3, 2, 3, 0));
  const Values values = run.Get("Out");
  EXPECT_EQ(Values(values.begin(), values.begin() + 3), Values({5, 5, 2}));
  EXPECT_TRUE(std::isnan(values[3]));
  EXPECT_EQ(values[4], 3);
}

TEST(TopKTest, WholeLongRows) {
  const int64_t c = 3000;
  const Values x = Draws(2 * c);
  KernelRun run("top_k");
  run.In("X", F32({2, c}, x)).Attr("k", c).Threads(2);
  const Values out = run.Get("Out");
  EXPECT_TRUE(std::is_sorted(out.rbegin() + c, out.rend()));
  EXPECT_TRUE(std::is_sorted(out.rbegin(), out.rbegin() + c));
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
