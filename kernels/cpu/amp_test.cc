#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::ElementsAre;
using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

void ExpectUpdate(double scale, int good, int bad, bool found_inf,
                  const Values& expected) {
  KernelRun run("update_loss_scaling");
  run.In("LossScaling", Scalar(scale))
      .In("GoodSteps", Scalar(good, DType::kI32))
      .In("BadSteps", Scalar(bad, DType::kI32))
      .In("FoundInf", Scalar(found_inf, DType::kBool))
      .Attr("decr_ratio", 0.8)
      .Attr("ceiling", 0.0);
  const Values found = {run.Value("LossScalingOut"), run.Value("GoodStepsOut"),
                        run.Value("BadStepsOut")};
  EXPECT_EQ(found, expected);
}

TEST(UpdateLossScalingTest, PublishedVectors) {
  ExpectUpdate(2048, 999, 1, false, {4096, 0, 0});
  ExpectUpdate(2048, 999, 1, true, {1638.4f, 0, 0});
  ExpectUpdate(2048, 10, 0, true, {2048, 0, 1});
  ExpectUpdate(1.1, 0, 1, true, {1, 0, 0});
  ExpectUpdate(0x1p127, 999, 0, false, {0x1p127, 0, 0});
}

TEST(GradientSeedTest, EveryElement) {
  KernelRun run("gradient_seed");
  run.In("LossScaling", Scalar(1024)).In("Count", Scalar(15));
  run.In("LargestCount", Scalar(16)).In("Loss", F32({2}, {}));
  EXPECT_THAT(run.Get("Out"), ElementsAre(960, 960));
}

TEST(GradientInvScaleTest, WorldIsRoundedUpToAPowerOfTwo) {
  const auto inv_scale = [](int world, const char* when) {
    KernelRun run("gradient_inv_scale");
    run.In("LossScaling", Scalar(1024)).In("Count", Scalar(48));
    run.In("LargestCount", Scalar(16)).World(world);
    run.Attr("gradient_scale", std::string(when));
    return run.Value("InvScale");
  };
  EXPECT_EQ(inv_scale(1, "pre"), 16.0f / (1024.0f * 48));
  EXPECT_EQ(inv_scale(3, "pre"), 16.0f / (256.0f * 48));
  EXPECT_EQ(inv_scale(4, "pre"), 16.0f / (256.0f * 48));
  EXPECT_EQ(inv_scale(3, "post"), 16.0f / (1024.0f * 48));
}

// ---- check_finite.

struct Verdict {
  bool found_inf;
  int first_bad;
  Values norms;
};

Verdict Check(const std::vector<Tensor>& low, const std::vector<Tensor>& f32,
              const std::vector<Tensor>& stats, double inv_scale,
              int threads = 1) {
  KernelRun run("check_finite");
  for (const Tensor& t : low) run.In("Low", t);
  for (const Tensor& t : f32) run.In("F32", t);
  for (const Tensor& t : stats) run.In("Stats", t);
  run.In("InvScale", Scalar(inv_scale)).Threads(threads);
  return {run.Value("FoundInf") != 0, static_cast<int>(run.Value("FirstBad")),
          run.Get("SquaredNorm")};
}

TEST(CheckFiniteTest, CleanGradients) {
  const Verdict v = Check({F16({2}, {3, -4}), F16({}, {2})}, {F32({2}, {1, 1})},
                          {F32({1}, {1e30})}, 0.5);
  EXPECT_FALSE(v.found_inf);
  EXPECT_EQ(v.first_bad, -1);
  EXPECT_THAT(v.norms, ElementsAre(6.25, 1, 0.5));
}

// 16-bit numbers are summed as they are stored, in whole rows of lanes: with
// the bits of the sum of what they widen to.
TEST(CheckFiniteTest, LowNumbersSumAsWideOnesDo) {
  for (int64_t n : {32, 33, 1024, 1056, 3000, 20480}) {
    Values values(n);
    for (int64_t i = 0; i < n; ++i) {
      values[i] = std::ldexp(1 + (i * 37 % 128) / 128.0, i % 11 - 5);
    }
    const Values wide = Check({}, {F32({n}, values)}, {}, 0.3).norms;
    EXPECT_EQ(Check({BF16({n}, values)}, {}, {}, 0.3).norms, wide) << n;
    EXPECT_EQ(Check({F16({n}, values)}, {}, {}, 0.3).norms, wide) << n;
    for (double bad : {kInf, kNaN}) {
      values[n / 2] = bad;
      EXPECT_EQ(Check({BF16({n}, values)}, {}, {}, 1).first_bad, 0) << n;
      EXPECT_EQ(Check({F16({n}, values)}, {}, {}, 1).first_bad, 0) << n;
    }
    // All finite, the sum is not.
    const Verdict large = Check({BF16({n}, Values(n, 1e19))}, {}, {}, 1);
    EXPECT_TRUE(large.found_inf) << n;
    EXPECT_EQ(large.first_bad, 1) << n;
  }
}

TEST(CheckFiniteTest, NamesTheFirstBadMember) {
  const Tensor good = F16({1}, {1}), fine = F32({1}, {1});
  EXPECT_EQ(Check({good, F16({2}, {1, kInf})}, {fine}, {}, 1).first_bad, 1);
  EXPECT_EQ(Check({good}, {fine, F32({1}, {kNaN})}, {}, 1).first_bad, 2);
  EXPECT_EQ(Check({good}, {}, {fine, F32({1}, {-kInf})}, 1).first_bad, 2);
  EXPECT_EQ(Check({}, {}, {fine}, 1).first_bad, -1);
  EXPECT_EQ(Check({BF16({1}, {kNaN})}, {}, {}, 1).first_bad, 0);
  EXPECT_TRUE(Check({good}, {}, {F32({1}, {kNaN})}, 1).found_inf);
}

TEST(CheckFiniteTest, LooksAtTheUnscaledGradient) {
  EXPECT_TRUE(Check({}, {F32({1}, {1e30})}, {}, 1e10).found_inf);
  EXPECT_TRUE(Check({F16({1}, {1})}, {}, {}, kInf).found_inf);
  EXPECT_TRUE(Check({F16({1}, {0})}, {}, {}, kNaN).found_inf);
}

TEST(CheckFiniteTest, RejectsANormThatOverflows) {
  // Each element and each square is finite, the sum of squares is not.
  const Verdict sum =
      Check({}, {F32({1}, {1}), F32({4}, {1.5e19, 1.5e19, 1e19, 1e19})}, {}, 1);
  EXPECT_TRUE(sum.found_inf);
  EXPECT_EQ(sum.first_bad, 2 + 1);  // of two
  const Verdict total =
      Check({}, {F32({1}, {1.3e19}), F32({1}, {1.4e19})}, {}, 1);
  EXPECT_TRUE(total.found_inf);
  EXPECT_EQ(total.first_bad, 2 + 1);
  // A square that overflows by itself; statistics have no norm.
  const Verdict square =
      Check({F16({1}, {1})}, {F32({2}, {1, 1e20})}, {F32({1}, {1e30})}, 1);
  EXPECT_TRUE(square.found_inf);
  EXPECT_EQ(square.first_bad, 3 + 1);
  // What is not finite goes before what is only large.
  EXPECT_EQ(Check({}, {F32({1}, {1e20}), F32({1}, {kInf})}, {}, 1).first_bad,
            1);
}

TEST(CheckFiniteTest, FindsOneElementAmongMany) {
  const int64_t n = 100003;
  for (int64_t at : {int64_t{0}, int64_t{1023}, int64_t{65536}, n - 1}) {
    for (int threads : {1, 4}) {
      Values x = Draws(n);
      x[at] = kNaN;
      const Verdict v =
          Check({F16({n}, Draws(n)), F16({n}, x)}, {}, {}, 1, threads);
      EXPECT_EQ(v.first_bad, 1) << at;
    }
  }
}

TEST(CheckFiniteTest, NormsDoNotDependOnThreads) {
  const int64_t n = 100003;
  const auto norms = [&](int threads) {
    return Check({}, {F32({n}, Draws(n)), F32({77}, Draws(77))}, {}, 0.1,
                 threads)
        .norms;
  };
  EXPECT_EQ(norms(1), norms(4));
}

TEST(CheckFiniteTest, NothingToCheck) {
  const Verdict v = Check({}, {}, {}, 1);
  EXPECT_FALSE(v.found_inf);
  EXPECT_TRUE(v.norms.empty());
}

// ---- Scaling, norms, clocks.

TEST(UnscaleTest, RoundsOnce) {
  KernelRun up("unscale");
  up.In("X", F16({2}, {3, kInf})).In("InvScale", Scalar(0.1));
  EXPECT_THAT(up.Get("Out"), ElementsAre(3 * 0.1f, kInf));
  KernelRun low("clip_by_factor");
  low.In("X", F32({1}, {3})).In("Factor", Scalar(0.1));
  EXPECT_EQ(low.Bind("TOut", DType::kF16).Value("Out"),
            static_cast<float>(half(3 * 0.1f)));
}

TEST(GlobalNormTest, SumsInTheGivenOrder) {
  // 1 is lost behind 2^24, but not before it: 1 + 1 = 2 is kept.
  const Tensor squares = F32({3}, {0x1p24, 1, 1});
  KernelRun plain("global_norm");
  plain.In("SquaredNorm", squares);
  EXPECT_EQ(plain.Value("Norm"), 4096);
  KernelRun ordered("global_norm");
  ordered.In("SquaredNorm", squares);
  ordered.Attr("order", std::vector<int64_t>{1, 2, 0});
  EXPECT_EQ(ordered.Value("Norm"), std::sqrt(0x1p24f + 2));
}

TEST(ClipFactorTest, IsAtMostOne) {
  KernelRun run("clip_factor");
  run.In("Norm", Scalar(4)).Attr("max_norm", 2.0);
  EXPECT_EQ(run.Value("Factor"), 2.0f / (4 + 1e-6f));
}

TEST(TickTest, AppliedWaitsForCleanSteps) {
  KernelRun tick("tick");
  EXPECT_EQ(tick.In("X", I64({}, {7})).Value("Out"), 8);
  for (bool reject : {false, true}) {
    KernelRun run("tick_applied");
    run.In("X", I64({}, {7})).In("FoundInf", Scalar(reject, DType::kBool));
    EXPECT_EQ(run.Value("Out"), reject ? 7 : 8);
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
