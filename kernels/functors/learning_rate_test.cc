#include "kernels/functors/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kSteps = 700;
constexpr double kEpoch = 17;

// Each policy as its authors write it, with libm. `n` is what the clock says.
using Formula = std::function<double(double n)>;

// One rounding to f32 is ours; where both are the same number to a few units of
// an f64, they may fall to either side of its middle.
void ExpectRates(const RateSettings& settings, const Formula& formula,
                 std::vector<double> boundaries = {}, float base = 0.3f,
                 float warm = 0, float total = kSteps) {
  const float schedule[] = {base, total, warm}, epoch = kEpoch;
  const RateTable table = {boundaries.data(), nullptr,
                           static_cast<int>(boundaries.size())};
  for (int64_t step = static_cast<int64_t>(warm); step < kSteps; ++step) {
    double n = static_cast<double>(step) - warm;
    if (settings.every != RateClock::kSteps) n /= kEpoch;
    if (settings.every == RateClock::kEpochs) n = std::floor(n);
    const auto expected = static_cast<float>(formula(n));
    const float found = LearningRate(settings, table, step, schedule, &epoch);
    ASSERT_NEAR(found, expected, 1.2e-7 * std::abs(expected) + 1e-14)
        << "step " << step;
  }
}

RateSettings With(RatePolicy policy, RateClock every = RateClock::kSteps) {
  RateSettings settings;
  settings.policy = policy;
  settings.every = every;
  return settings;
}

constexpr RateClock kClocks[] = {RateClock::kSteps, RateClock::kEpochs,
                                 RateClock::kEpochParts};

TEST(LearningRatePolicies, Step) {
  for (const RateClock every : kClocks) {
    RateSettings s = With(RatePolicy::kStep, every);
    s.gamma = 0.7;
    s.length = 13;
    ExpectRates(
        s, [](double n) { return 0.3f * std::pow(0.7, std::floor(n / 13)); });
  }
}

TEST(LearningRatePolicies, MultiStep) {
  for (const RateClock every : kClocks) {
    RateSettings s = With(RatePolicy::kMultiStep, every);
    s.gamma = 0.1;
    ExpectRates(s,
                [](double n) {
                  return 0.3f *
                         std::pow(0.1, (n >= 3) + (n >= 20) + (n >= 500));
                },
                {3, 20, 500});
  }
}

TEST(LearningRatePolicies, Polynomial) {
  for (const double power : {0.5, 0.9, 1.0, 2.0, 3.7}) {
    RateSettings s = With(RatePolicy::kPoly);
    s.power = power;
    s.last_rate = 0.001;
    ExpectRates(s, [power](double n) {
      return (0.3f - 0.001) * std::pow(1 - n / kSteps, power) + 0.001;
    });
    s.length = 300;
    ExpectRates(s, [power](double n) {
      return (0.3f - 0.001) * std::pow(1 - std::min(n, 300.0) / 300, power) +
             0.001;
    });
    // As Paddle's cycle: the length grows with each.
    s.begins_again = true;
    ExpectRates(s, [power](double n) {
      const double rounds = n == 0 ? 1 : std::ceil(n / 300);
      return (0.3f - 0.001) * std::pow(1 - n / (300 * rounds), power) + 0.001;
    });
  }
  RateSettings s = With(RatePolicy::kPoly, RateClock::kEpochs);
  ExpectRates(s, [](double n) { return 0.3f * (1 - n / (kSteps / kEpoch)); });
}

TEST(LearningRatePolicies, Exponential) {
  for (const RateClock every : kClocks) {
    RateSettings s = With(RatePolicy::kExponential, every);
    s.gamma = 0.97;
    ExpectRates(s, [](double n) { return 0.3f * std::pow(0.97, n); });
  }
}

double Anneal(bool linear, double from, double to, double t) {
  return linear ? from + (to - from) * t
                : to + (from - to) / 2 * (1 + std::cos(kPi * t));
}

TEST(LearningRatePolicies, OneCycle) {
  for (const bool linear : {false, true}) {
    RateSettings s = With(RatePolicy::kOneCycle);
    s.max_lr = 0.8;
    s.rise = 0.3;
    s.div_factor = 25;
    s.final_div_factor = 1e4;
    s.anneals_linearly = linear;
    const double up = 0.3 * kSteps - 1, first = 0.8 / 25, last = first / 1e4;
    ExpectRates(s, [=](double n) {
      if (n <= up) return Anneal(linear, first, 0.8, n / up);
      return Anneal(linear, 0.8, last, (n - up) / (kSteps - 1 - up));
    });
    s.three_phase = true;
    const double down = 2 * 0.3 * kSteps - 2;
    ExpectRates(s, [=](double n) {
      if (n <= up) return Anneal(linear, first, 0.8, n / up);
      if (n <= down) return Anneal(linear, 0.8, first, (n - up) / (down - up));
      return Anneal(linear, first, last, (n - down) / (kSteps - 1 - down));
    });
  }
}

// A phase of no length, a run of one step, steps behind the end.
TEST(LearningRatePolicies, OneCycleAtItsEdges) {
  RateSettings s = With(RatePolicy::kOneCycle);
  s.factor = 2;
  s.rise = 0.1;
  s.div_factor = s.final_div_factor = 10;
  const float ten[] = {0.5f, 10, 0}, one[] = {0.5f, 1, 0};
  const RateTable none = {nullptr, nullptr, 0};
  EXPECT_EQ(LearningRate(s, none, 0, ten, nullptr), 1.0f);
  EXPECT_EQ(LearningRate(s, none, 9, ten, nullptr), 0.01f);
  EXPECT_EQ(LearningRate(s, none, 50, ten, nullptr), 0.01f);
  EXPECT_EQ(LearningRate(s, none, 0, one, nullptr), 0.01f);
}

TEST(LearningRatePolicies, Noam) {
  RateSettings s = With(RatePolicy::kNoam);
  s.d_model = 512;
  s.length = 100;
  ExpectRates(s, [](double n) {
    return 0.3f * std::pow(512, -0.5) *
           std::min(std::pow(n + 1, -0.5), (n + 1) * std::pow(100, -1.5));
  });
}

TEST(LearningRatePolicies, Cyclic) {
  for (const CyclicMode mode :
       {CyclicMode::kTriangular, CyclicMode::kTriangular2,
        CyclicMode::kExpRange}) {
    for (const RateClock every : kClocks) {
      RateSettings s = With(RatePolicy::kCyclic, every);
      s.mode = mode;
      s.gamma = 0.99;
      s.length = 6;
      s.length_down = 9;
      s.low_lr = 0.01;
      s.max_lr = 0.1;
      ExpectRates(s, [mode](double n) {
        const double cycle = std::floor(1 + n / 15), x = 1 + n / 15 - cycle;
        const double up = 6.0 / 15;
        double height = x <= up ? x / up : (x - 1) / (up - 1);
        if (mode == CyclicMode::kTriangular2) height /= std::pow(2, cycle - 1);
        if (mode == CyclicMode::kExpRange) height *= std::pow(0.99, n);
        return 0.01 + (0.1 - 0.01) * height;
      });
    }
  }
}

TEST(LearningRatePolicies, CosineRestarts) {
  for (const double growth : {1.0, 2.0, 3.0}) {
    for (const RateClock every : kClocks) {
      RateSettings s = With(RatePolicy::kCosineRestarts, every);
      s.length = 5;
      s.growth = growth;
      s.min_ratio = 0.1;
      ExpectRates(s, [growth](double n) {
        double length = 5;
        for (; n >= length; length *= growth) n -= length;
        const double low = 0.3f * 0.1;
        return low + (0.3f - low) * (1 + std::cos(kPi * n / length)) / 2;
      });
    }
  }
}

// What comes after it counts from its end; it rises to where that begins.
TEST(LearningRatePolicies, AfterAWarmUp) {
  RateSettings s = With(RatePolicy::kStep);
  s.gamma = 0.7;
  s.length = 13;
  ExpectRates(
      s, [](double n) { return 0.3f * std::pow(0.7, std::floor(n / 13)); }, {},
      0.3f, 40);
  const float schedule[] = {0.3f, kSteps, 40};
  const RateTable none = {nullptr, nullptr, 0};
  EXPECT_EQ(LearningRate(s, none, 9, schedule, nullptr), 0.3f * 0.25f);
  s.policy = RatePolicy::kCyclic;
  s.length = s.length_down = 10;
  s.low_lr = 0.04;
  s.max_lr = 0.4;
  EXPECT_EQ(LearningRate(s, none, 19, schedule, nullptr), 0.02f);
  EXPECT_EQ(LearningRate(s, none, 40, schedule, nullptr), 0.04f);
}

TEST(LearningRateArithmetic, IsLibmsToAFewUnits) {
  using namespace rate_internal;  // NOLINT(build/namespaces)
  for (double t = 0; t <= 1; t += 1.0 / 4096) {
    EXPECT_NEAR(CosineOfHalfTurn(t), std::cos(kPi * t), 4e-16) << t;
  }
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(WideLog(x), std::log(x), 4e-16 * std::abs(std::log(x)) + 1e-16);
  }
  for (double x = -740; x < 700; x += 0.37) {
    EXPECT_NEAR(WideExp(x), std::exp(x), 4e-15 * std::exp(x) + 1e-322) << x;
  }
  EXPECT_EQ(WidePower(0, 0.5), 0);
  EXPECT_EQ(WidePower(0, 0), 1);
  EXPECT_EQ(WidePower(1, 0.3), 1);
}

}  // namespace
}  // namespace functors
}  // namespace halftone
