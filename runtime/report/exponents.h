// What f16 keeps of a value's elements: their exponents, and what is lost at
// either end.
#ifndef HALFTONE_RUNTIME_REPORT_EXPONENTS_H_
#define HALFTONE_RUNTIME_REPORT_EXPONENTS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace halftone {
namespace runtime {

// Of f16's numbers that are not zero: from its smallest subnormal, 2^-24, to
// its largest, 65504.
inline constexpr int kLeastExponent = -24, kMostExponent = 15;
inline constexpr int kExponentBins = kMostExponent - kLeastExponent + 1;

// As f16 holds the elements, rounded to nearest even (IEEE 754 binary16). Each
// element is counted once.
struct ExponentHistogram {
  // Those with 2^e <= |v| < 2^(e+1), for e from kLeastExponent on; what f16
  // rounds up to 2^-24 is in the first.
  std::array<int64_t, kExponentBins> bins{};
  int64_t zero = 0;        // are 0
  int64_t flushed = 0;     // become 0: |v| <= 2^-25
  int64_t overflowed = 0;  // are or become infinite: |v| >= 65520
  int64_t nan = 0;

  int64_t elements() const;
  // Of the elements that are neither 0 nor NaN; 0 if there are none.
  double flushed_share() const;
  double overflowed_share() const;
};

// Loss scales, powers of two, at which f16 would hold elements that were
// computed with another one.
struct ScaleRange {
  // The largest at which nothing overflows. None: an element is infinite
  // already, or none would ever be.
  std::optional<float> most;
  // The smallest at which less than kMayBeFlushed of the elements are flushed,
  // as far as the elements tell: of what f16 has held, those that it flushed
  // are 0 already. None: no scale does, or all elements are 0.
  std::optional<float> least;
};
inline constexpr double kMayBeFlushed = 0.001;

// Counts of exponents over f32's whole range, from which follows what f16 would
// hold of the elements times any power of two.
class ExponentCounts {
 public:
  // Elements of f32, f16 and bf16, as their bits. One pass.
  void AddF32(absl::Span<const uint32_t> words);
  void AddF16(absl::Span<const uint16_t> words);
  void AddBF16(absl::Span<const uint16_t> words);
  void Add(const ExponentCounts& other);

  // As f16 holds the elements times 2^`shift`.
  ExponentHistogram Histogram(int shift = 0) const;
  // `scale`: the loss scale that the elements have; > 0. Of one that is no
  // power of two the range is the largest that holds for sure.
  ScaleRange Scales(float scale) const;

 private:
  // By f32's exponent field; apart in each the powers of two themselves, and
  // what 11 significant bits round up to the next one: f16's bounds are exact.
  enum Class { kPower, kBetween, kRoundsUp, kClasses };
  static constexpr int kFields = 256, kCells = 4 * kFields;
  static int CellOf(uint32_t bits);
  template <typename Word, typename Cell>
  void Count(absl::Span<const Word> words, const Cell& cell);
  int64_t at(int field, int kind) const { return counts_[4 * field + kind]; }

  std::array<int64_t, kCells> counts_{};
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_EXPONENTS_H_
