// The learning rate of a step. Formulas: learning_rate in
// graph/ops/optimizer.cc. Computed in double and rounded once: it is one
// number a step. Policies newer than the cosine call nothing of libm but roots,
// so that host and device give the same bits.
#ifndef HALFTONE_KERNELS_FUNCTORS_LEARNING_RATE_H_
#define HALFTONE_KERNELS_FUNCTORS_LEARNING_RATE_H_

#include <cmath>
#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

enum class RatePolicy {
  kConstant,
  kCosine,
  kLinear,
  kPoly,
  kExponential,
  kPiecewise,
  kStep,
  kMultiStep,
  kOneCycle,
  kNoam,
  kCyclic,
  kCosineRestarts
};
// What the clock of a policy counts.
enum class RateClock { kSteps, kEpochs, kEpochParts };
enum class CyclicMode { kTriangular, kTriangular2, kExpRange };

// The attributes of the op: pct_start is `rise`, cycle `begins_again`.
struct RateSettings {
  RatePolicy policy = RatePolicy::kConstant;
  RateClock every = RateClock::kSteps;
  CyclicMode mode = CyclicMode::kTriangular;
  bool begins_again = false, three_phase = false, anneals_linearly = false;
  double gamma = 1, power = 1, min_ratio = 0;
  double length = 0, length_down = 0, growth = 1;
  double last_rate = 0, low_lr = -1, max_lr = -1, factor = 1;
  double rise = 0, div_factor = 1, final_div_factor = 1, d_model = 1;
};
// Where a piecewise policy changes, and between what.
struct RateTable {
  const double* boundaries;  // ascending
  const double* values;      // one more, or none
  int count;                 // of boundaries
};
// What is fed: f32 on the device.
struct RateFeeds {
  double base, total, warm;  // @schedule; warm in whole steps
  double epoch;              // steps of an epoch; 0: not fed
};

namespace rate_internal {

// base^n for a whole n of at least 0.
HT_HOST_DEVICE inline double WholePower(double base, double n) {
  double result = 1;
  for (uint64_t k = static_cast<uint64_t>(n); k != 0; k >>= 1) {
    if ((k & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

// ln(x) for x > 0: 2 artanh((m - 1) / (m + 1)) with x = m 2^e, m in [0.7, 1.4].
HT_HOST_DEVICE inline double WideLog(double x) {
  double exponent = 0;
  for (; x < 0.70710678118654752; x *= 2) exponent -= 1;
  for (; x > 1.4142135623730951; x *= 0.5) exponent += 1;
  const double s = (x - 1) / (x + 1), z = s * s;
  double sum = 0;  // of z^k / (2 k + 1): below 2^-60 from k = 12 on
  for (int k = 12; k >= 0; --k) sum = sum * z + 1.0 / (2 * k + 1);
  return exponent * 0.69314718055994531 + 2 * s * sum;
}

// e^x for x of at most 700: its series within ln(2) / 2 of 0, times 2^n.
HT_HOST_DEVICE inline double WideExp(double x) {
  if (x < -745) return 0;
  const double n = floor(x * 1.4426950408889634 + 0.5);
  // The first part of ln 2 has 33 bits: its products with n are exact.
  const double r = (x - n * 0.693147180559890330) - n * 5.4979230187083712e-14;
  double sum = 1;  // the next term is below 2^-60
  for (int k = 14; k >= 1; --k) sum = 1 + sum * r / k;
  return n < 0 ? sum * WholePower(0.5, -n) : sum * WholePower(2, n);
}

// x^y for x of at least 0; 0^0 is 1.
HT_HOST_DEVICE inline double WidePower(double x, double y) {
  if (y >= 0 && y < 9e15 && floor(y) == y) return WholePower(x, y);
  if (x == 0 || x == 1) return x;
  return WideExp(y * WideLog(x));
}

// cos(pi t) for t in [0, 1], as the sine of its distance from 1 / 2.
HT_HOST_DEVICE inline double CosineOfHalfTurn(double t) {
  if (t >= 1) return -1;
  if (t <= 0) return 1;
  const double x = 3.14159265358979323846 * (0.5 - t), z = x * x;
  double sum = 1;  // the next term is below 2^-56
  for (int k = 22; k >= 2; k -= 2) sum = 1 - sum * z / (k * (k + 1));
  return x * sum;
}

HT_HOST_DEVICE inline double Anneal(const RateSettings& s, double from,
                                    double to, double t) {
  if (s.anneals_linearly) return (to - from) * t + from;
  return to + (from - to) / 2 * (CosineOfHalfTurn(t) + 1);
}

HT_HOST_DEVICE inline double PeakRate(const RateSettings& s, double base) {
  return s.max_lr >= 0 ? s.max_lr : base * s.factor;
}

// `n` of `length` steps: up to the peak, down, and, where that are three
// phases, on to what the last one is.
HT_HOST_DEVICE inline double OneCycle(const RateSettings& s, double base,
                                      double n, double length) {
  const double peak = PeakRate(s, base);
  const double start = peak / s.div_factor, last = start / s.final_div_factor;
  const double up = s.rise * length - 1;
  const double down = s.three_phase ? 2 * s.rise * length - 2 : up;
  double begin = 0, end = up, from = start, to = peak;
  if (n > up && n <= down) {
    begin = up;
    end = down;
    from = peak;
    to = start;
  } else if (n > up) {
    begin = down;
    end = length - 1;
    from = s.three_phase ? start : peak;
    to = last;
  }
  // A phase of no length is over.
  const double t = end > begin ? (n - begin) / (end - begin) : 1;
  return Anneal(s, from, to, t > 1 ? 1 : t);
}

HT_HOST_DEVICE inline double Cyclic(const RateSettings& s, double base,
                                    double n) {
  const double low = s.low_lr >= 0 ? s.low_lr : base;
  const double whole = s.length + s.length_down;
  const double cycle = floor(1 + n / whole);
  const double x = 1 + n / whole - cycle, ratio = s.length / whole;
  double height = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
  if (s.mode == CyclicMode::kTriangular2) height *= WholePower(0.5, cycle - 1);
  if (s.mode == CyclicMode::kExpRange) height *= WidePower(s.gamma, n);
  return low + (PeakRate(s, base) - low) * height;
}

HT_HOST_DEVICE inline double CosineRestarts(const RateSettings& s, double n) {
  double length = s.length;
  if (s.growth == 1) {
    n -= floor(n / length) * length;
  } else {
    for (; n >= length; length *= s.growth) n -= length;
  }
  const double t = (1 + CosineOfHalfTurn(n / length)) / 2;
  return s.min_ratio + (1 - s.min_ratio) * t;
}

// `rest`: of the run, after the warm-up.
HT_HOST_DEVICE inline double Poly(const RateSettings& s, double base, double n,
                                  double rest) {
  double length = s.length > 0 ? s.length : (rest > 1 ? rest : 1);
  if (s.begins_again) {
    const double rounds = ceil(n / length);
    length *= rounds > 1 ? rounds : 1;
  }
  const double left = n < length ? 1 - n / length : 0;
  const double factor =
      s.min_ratio + (1 - s.min_ratio) * WidePower(left, s.power);
  return s.last_rate + (base - s.last_rate) * factor;
}

// Over the run: the oldest policies, which ask libm.
HT_HOST_DEVICE inline double OverTheRun(const RateSettings& s, double n,
                                        double rest) {
  double t = n / (rest > 1 ? rest : 1);
  t = t > 1 ? 1 : t;
  const double span = 1 - s.min_ratio;
  if (s.policy == RatePolicy::kLinear) return 1 - span * t;
  return s.min_ratio + span * (1 + cos(3.14159265358979323846 * t)) / 2;
}

HT_HOST_DEVICE inline int Passed(const RateTable& table, double at) {
  int passed = 0;
  while (passed < table.count && table.boundaries[passed] <= at) ++passed;
  return passed;
}

// A boundary up to 1 is a fraction of the run, one above 1 a step.
HT_HOST_DEVICE inline double Piecewise(const RateTable& table, double step,
                                       double total) {
  int passed = 0;
  while (passed < table.count) {
    const double b = table.boundaries[passed];
    const double at = b <= 1 ? step / (total > 1 ? total : 1) : step;
    if (b > at) break;
    ++passed;
  }
  return table.values[passed];
}

// `step` applied steps after the warm-up.
HT_HOST_DEVICE inline double RateAfter(const RateSettings& s,
                                       const RateTable& table,
                                       const RateFeeds& f, double step) {
  const double rest = f.total - f.warm;
  const bool by_steps = s.every == RateClock::kSteps;
  double n = by_steps ? step : step / f.epoch;
  if (s.every == RateClock::kEpochs) n = floor(n);
  switch (s.policy) {
    case RatePolicy::kCosine:
    case RatePolicy::kLinear:
      return f.base * OverTheRun(s, step, rest);
    case RatePolicy::kPiecewise:
      return f.base * Piecewise(table, step + f.warm, f.total);
    case RatePolicy::kPoly:
      return Poly(s, f.base, n, by_steps ? rest : rest / f.epoch);
    case RatePolicy::kExponential:
      return f.base * WidePower(s.gamma, n);
    case RatePolicy::kStep:
      return f.base * WholePower(s.gamma, floor(n / s.length));
    case RatePolicy::kMultiStep:
      return f.base * WholePower(s.gamma, Passed(table, n));
    case RatePolicy::kOneCycle:
      return OneCycle(s, f.base, step, rest);
    case RatePolicy::kNoam: {
      const double now = step + 1, warm = s.length;
      const double rising = now / (warm * sqrt(warm)), falling = 1 / sqrt(now);
      return f.base / sqrt(s.d_model) * (rising < falling ? rising : falling);
    }
    case RatePolicy::kCyclic:
      return Cyclic(s, f.base, n);
    case RatePolicy::kCosineRestarts:
      return f.base * CosineRestarts(s, n);
    default:
      return f.base;
  }
}

}  // namespace rate_internal

// `schedule`: base rate, total steps, warm-up steps. A warm-up of a fraction of
// an epoch may end within a step: it takes that whole step, so that the last
// one has the rate that the policy begins with and none has more. `epoch`:
// steps of an epoch, null where the policy counts steps.
HT_HOST_DEVICE inline float LearningRate(const RateSettings& settings,
                                         const RateTable& table,
                                         int64_t applied, const float* schedule,
                                         const float* epoch) {
  const double step = static_cast<double>(applied);
  const RateFeeds feeds = {schedule[0], schedule[1], ceil(schedule[2]),
                           epoch != nullptr && *epoch > 0 ? *epoch : 1.0};
  if (step < feeds.warm) {
    // Only these begin elsewhere than at the base rate.
    const bool own_start = settings.policy == RatePolicy::kOneCycle ||
                           settings.policy == RatePolicy::kCyclic ||
                           settings.policy == RatePolicy::kPiecewise;
    const double start =
        own_start ? rate_internal::RateAfter(settings, table, feeds, 0)
                  : feeds.base;
    return static_cast<float>(start * ((step + 1) / feeds.warm));
  }
  return static_cast<float>(
      rate_internal::RateAfter(settings, table, feeds, step - feeds.warm));
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_LEARNING_RATE_H_
