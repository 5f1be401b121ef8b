#include "runtime/report/exponents.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "graph/base/half.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kBias = 127, kInfinite = 255, kMantissaBits = 23;
// Between the two largest mantissas of 11 bits: a tie, and so even, the next
// power of two.
constexpr uint32_t kTie = 0x7ff000;
// Powers of two that f32 holds.
constexpr int kLeastScale = -126, kMostScale = 127;

double Share(int64_t part, const ExponentHistogram& h) {
  const int64_t whole = h.elements() - h.zero - h.nan;
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

int64_t ExponentHistogram::elements() const {
  return std::accumulate(bins.begin(), bins.end(),
                         zero + flushed + overflowed + nan);
}

double ExponentHistogram::flushed_share() const {
  return Share(flushed, *this);
}

double ExponentHistogram::overflowed_share() const {
  return Share(overflowed, *this);
}

int ExponentCounts::CellOf(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t mantissa = magnitude & 0x7fffffu;
  return static_cast<int>((magnitude >> kMantissaBits) * 4 + (mantissa != 0) +
                          (mantissa >= kTie));
}

// Neighbours have the same exponent as a rule: each of four in a row has
// counters of its own, so that none waits for the one before to be stored.
template <typename Word, typename Cell>
void ExponentCounts::Count(absl::Span<const Word> words, const Cell& cell) {
  constexpr size_t kMost = size_t{1} << 31;  // that a counter holds
  while (!words.empty()) {
    uint32_t lanes[4][kCells] = {};
    const absl::Span<const Word> part = words.subspan(0, kMost);
    size_t i = 0;
    for (; i + 4 <= part.size(); i += 4) {
      for (int lane = 0; lane < 4; ++lane) ++lanes[lane][cell(part[i + lane])];
    }
    for (; i < part.size(); ++i) ++lanes[0][cell(part[i])];
    for (int c = 0; c < kCells; ++c) {
      counts_[c] +=
          int64_t{lanes[0][c]} + lanes[1][c] + lanes[2][c] + lanes[3][c];
    }
    words.remove_prefix(part.size());
  }
}

void ExponentCounts::AddF32(absl::Span<const uint32_t> words) {
  Count(words, CellOf);
}

void ExponentCounts::AddBF16(absl::Span<const uint16_t> words) {
  Count(words, [](uint16_t word) { return CellOf(uint32_t{word} << 16); });
}

void ExponentCounts::AddF16(absl::Span<const uint16_t> words) {
  // Of subnormals the exponent is found by a loop or a table.
  using Table = std::array<uint16_t, 1 << 15>;
  static const Table* const table = [] {
    auto cells = std::make_unique<Table>();
    for (uint32_t word = 0; word < cells->size(); ++word) {
      const float value = half_internal::HalfToFloat(word);
      (*cells)[word] = CellOf(half_internal::Bits(value));
    }
    return cells.release();
  }();
  Count(words, [](uint16_t word) { return (*table)[word & 0x7fff]; });
}

void ExponentCounts::Add(const ExponentCounts& other) {
  for (int c = 0; c < kCells; ++c) counts_[c] += other.counts_[c];
}

ExponentHistogram ExponentCounts::Histogram(int shift) const {
  ExponentHistogram h;
  h.zero = at(0, kPower);
  h.flushed = at(0, kBetween) + at(0, kRoundsUp);  // f32's own subnormals
  h.overflowed = at(kInfinite, kPower);
  h.nan = at(kInfinite, kBetween) + at(kInfinite, kRoundsUp);
  for (int field = 1; field < kInfinite; ++field) {
    const int exponent = field - kBias + shift;
    for (int kind = 0; kind < kClasses; ++kind) {
      const int64_t count = at(field, kind);
      const bool half_of_least = exponent == kLeastExponent - 1;
      if (exponent < kLeastExponent - 1 || (half_of_least && kind == kPower)) {
        h.flushed += count;
      } else if (exponent > kMostExponent ||
                 (exponent == kMostExponent && kind == kRoundsUp)) {
        h.overflowed += count;
      } else {
        h.bins[std::max(exponent - kLeastExponent, 0)] += count;
      }
    }
  }
  return h;
}

ScaleRange ExponentCounts::Scales(float scale) const {
  const ExponentHistogram now = Histogram();
  const int64_t whole = now.elements() - now.zero - now.nan;
  ScaleRange range;
  if (whole == 0) return range;
  // scale = 2^log, or more and less than the next power of two: then neither
  // end is to be on the wrong side.
  const int log = std::ilogb(scale);
  const int up = std::ldexp(1.0f, log) == scale ? 0 : 1;
  const auto power_of_two = [](int exponent) -> std::optional<float> {
    if (exponent > kMostScale) return std::nullopt;
    return std::ldexp(1.0f, std::max(exponent, kLeastScale));
  };
  int top = kInfinite - 1;
  while (top > 0 &&
         at(top, kPower) + at(top, kBetween) + at(top, kRoundsUp) == 0) {
    --top;
  }
  if (at(kInfinite, kPower) == 0) {
    const int rounds_up = at(top, kRoundsUp) > 0 ? 1 : 0;
    range.most = power_of_two(log + kMostExponent - (top - kBias + rounds_up));
  }
  // The largest exponent that f16 may hold as 2^-25, with what is flushed then.
  int64_t below = at(0, kBetween) + at(0, kRoundsUp);
  int bound = 0;
  for (int field = 1; field < kInfinite; ++field) {
    const auto flushed = static_cast<double>(below + at(field, kPower));
    if (flushed >= kMayBeFlushed * static_cast<double>(whole)) break;
    bound = field;
    below += at(field, kPower) + at(field, kBetween) + at(field, kRoundsUp);
  }
  if (bound > 0) {
    range.least = power_of_two(log + up + kLeastExponent - 1 - (bound - kBias));
  }
  return range;
}

}  // namespace runtime
}  // namespace halftone
