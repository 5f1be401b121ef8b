// Winograd's minimal filtering: F(2x2, 3x3) makes tiles of 2x2 pixels from 4x4
// that it sees with 16 products for each pair of channels, where windows of a
// 3x3 convolution one by one take 36; F(4x4, 3x3) sees 6x6 and takes 36 in
// place of 144; F(2x4, 5x5) sees 6x8 and takes 48 in place of 200, F(4x4, 5x5)
// 64 in place of 400. Lavin, Gray: Fast Algorithms for Convolutional Neural
// Networks (2015), section 4.1:
//
//   Y = A' [(G g G') * (B' d B)] A
//
// The sum over channels is taken between the transforms, as products of
// matrices, one for each of the points. The filter's gradient is the adjoint:
// G' [sum over tiles of (A dY A') * (B' d B)] G.
//
// Of F(2x2, 3x3), with B' d of a line (d0 - d2, d1 + d2, d2 - d1, d1 - d3), G g
// (g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2) and A' m (m0 + m1 + m2,
// m1 - m2 - m3), transforms only add and halve: of normal numbers and 64 to 512
// channels the error in f32 is 1.2 to 2 times that of direct sums, below 5e-7
// of the largest. Of six points polynomials are taken at 0, 5/8, -5/8, 3/2,
// -3/2 and infinity: of F(4x4, 3x3) the error is 1.5 to 2 times that of direct
// sums, below 4e-6 of the largest (with halves and 2, 2.3 to 3.9). Of eight
// points they are taken at 0, 1/2, -1/2, 2, -2, 1, -1 and infinity: of
// F(2x4, 5x5), which has both, and 16 to 256 channels the error is 2 to 3 times
// that of direct sums, of F(4x4, 5x5) 4 to 6 times, below 1e-5 of the largest.
// Other points were tried, eighths up to 4, and round more. What is not finite
// in one pixel is so in the whole of its tiles.
//
// A tile of four at an image's end of which only two pixels are left is F(2, 3)
// or F(2, 5) in that dim: it takes all points but the last pair, with the same
// transformed filter, as what its own factors lack is in what it sees. It
// rounds less than the whole ones.
#ifndef HALFTONE_KERNELS_CPU_WINOGRAD_H_
#define HALFTONE_KERNELS_CPU_WINOGRAD_H_

#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/base/config.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/pack_rows.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/winograd_tiles.h"

namespace halftone {
namespace kernels {

// F(made, tap), of one dim: pixels and points of a tile, taps of a filter.
template <int made, int tap>
struct WinogradSizes {
  static constexpr int kMade = made, kTap = tap, kSeen = made + tap - 1;
  // Pixels of a short tile, which has a pair of points less; 0: there is none.
  static constexpr int kMadeShort = made > 2 ? made - 2 : 0;
};

// Transformed tiles: for each point a matrix of tiles and channels, which lie
// in panels of kPanel.
struct WinogradPoints {
  float* data;
  int64_t point;  // from a point to the next
  int64_t row;    // from a tile to the next
  int64_t panel;  // from a panel to the next; kPanel: rows lie whole

  float* At(int64_t tile, int64_t channel) const {
    return data + tile * row + channel / kPanel * panel + channel % kPanel;
  }
};

// From a tile to the next where its channels lie side by side: caches have few
// places for what lies a power of two apart, from 512 bytes on.
inline int64_t WinogradRow(int64_t channels) {
  return channels + (channels % 128 == 0 ? kPanel : 0);
}

// B' d B of what tiles see of x, and A dY A' of what they make, where that is
// given: of the channels of a range, whole panels. Tiles lie in `order`. `x`
// begins with its first pixel and channel. W: a Winograd of those below.
template <typename W>
void TransformSeen(const WinogradTiles& tiles, const PixelRows& x,
                   const WinogradOrder& order, WinogradRange channels,
                   const WinogradPoints& to);
template <typename W>
void TransformMade(const WinogradTiles& tiles, const PixelRows& x,
                   const WinogradOrder& order, WinogradRange channels,
                   const WinogradPoints& to);

// ---- For bodies of ForIsa. `Line`s transform a line of kFrom vectors into one
// of kTo, which lie to_step apart.

namespace winograd_internal {
// Polynomials are taken at 0, at infinity, and at these and their negatives:
// the last ones are those without which short tiles round least.
template <int pairs>
inline constexpr float kAt[pairs] = {};
template <>
inline constexpr float kAt<2>[] = {1.5f, 0.625f};
template <>
inline constexpr float kAt<3>[] = {0.5f, 2, 1};

// Of each pair and of 0: the product of what a point is apart from the others,
// to the power of -1, but for the sign of that of 0.
template <int pairs>
struct Factors {
  float of[pairs];
  float zero;
};
template <int pairs>
constexpr Factors<pairs> FactorsOf() {
  Factors<pairs> factors = {};
  float zero = 1;
  for (int i = 0; i < pairs; ++i) {
    const float square = kAt<pairs>[i] * kAt<pairs>[i];
    float apart = 2 * square;
    for (int p = 0; p < pairs; ++p) {
      if (p != i) apart *= square - kAt<pairs>[p] * kAt<pairs>[p];
    }
    factors.of[i] = 1 / apart;
    zero *= square;
  }
  factors.zero = 1 / zero;
  return factors;
}

// x to the power of n.
constexpr float Power(float x, int n) {
  return n == 0 ? 1 : x * Power(x, n - 1);
}

// What the pairs that a short tile lacks add to the product that a point is
// apart from the others: where its square is given, and of 0, with its sign.
template <int pairs, int kept>
constexpr float Lacking(float square) {
  float product = 1;
  for (int p = kept; p < pairs; ++p) {
    product *= square - kAt<pairs>[p] * kAt<pairs>[p];
  }
  return product;
}
template <int pairs, int kept>
constexpr float LackingOfZero() {
  return (pairs % 2 == 0 ? 1 : -1) * Lacking<pairs, kept>(0);
}

// Even and odd terms differ in sign alone at a point and at its negative. Those
// of the last pair are last, so that short tiles take the first points.
template <int pairs, typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void StorePoints(const V& zero,
                                                     const V& infinity,
                                                     const V* even,
                                                     const V* odd, V* to,
                                                     int to_step) {
  to[0] = zero;
  to[to_step] = infinity;
#pragma GCC unroll 3
  for (int p = 0; p < pairs; ++p) {
    to[(2 * p + 2) * to_step] = even[p] + odd[p];
    to[(2 * p + 3) * to_step] = even[p] - odd[p];
  }
}

// By the first `kept` of the pairs.
template <int pairs, int kept>
struct Seen;
template <int pairs>
struct Seen<pairs, 1> {
  static constexpr int kFrom = 4, kTo = 4;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* d, V* to, int to_step) {
    const V d1 = d[1], d2 = d[2];
    constexpr float p = kAt<pairs>[0];
    constexpr float at_0 = LackingOfZero<pairs, 1>(),
                    at_p = Lacking<pairs, 1>(p * p);
    const V even[] = {at_p * d2};
    const V odd[] = {at_p * p * d1};
    StorePoints<1>(at_0 * d2 - at_0 * p * p * d[0], d[3] - p * p * d1, even,
                   odd, to, to_step);
  }
};
template <int pairs>
struct Seen<pairs, 2> {
  static constexpr int kFrom = 6, kTo = 6;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* d, V* to, int to_step) {
    const V d1 = d[1], d2 = d[2], d3 = d[3];
    const V d4 = d[4];
    constexpr float p = kAt<pairs>[0], q = kAt<pairs>[1];
    constexpr float all = p * p * q * q, sum = p * p + q * q;
    constexpr float at_0 = LackingOfZero<pairs, 2>(),
                    at_p = Lacking<pairs, 2>(p * p),
                    at_q = Lacking<pairs, 2>(q * q);
    const V even[] = {at_p * d4 - at_p * q * q * d2,
                      at_q * d4 - at_q * p * p * d2};
    const V odd[] = {at_p * p * d3 - at_p * p * q * q * d1,
                     at_q * q * d3 - at_q * q * p * p * d1};
    const V zero = (at_0 * all * d[0] + at_0 * d4) - at_0 * sum * d2;
    const V infinity = (all * d1 + d[5]) - sum * d3;
    StorePoints<2>(zero, infinity, even, odd, to, to_step);
  }
};
template <>
struct Seen<3, 3> {
  static constexpr int kFrom = 8, kTo = 8;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* d, V* to, int to_step) {
    const V d1 = d[1], d2 = d[2], d3 = d[3];
    const V d4 = d[4], d5 = d[5], d6 = d[6];
    const V even[] = {(d6 + 4.0f * d2) - 5.0f * d4,
                      (d6 + 0.25f * d2) - 1.25f * d4, (d6 + d2) - 4.25f * d4};
    const V odd[] = {(0.5f * d5 + 2.0f * d1) - 2.5f * d3,
                     (2.0f * d5 + 0.5f * d1) - 2.5f * d3,
                     (d5 + d1) - 4.25f * d3};
    const V zero = (d[0] - d6) + 5.25f * (d4 - d2);
    const V infinity = (d[7] - d1) + 5.25f * (d3 - d5);
    StorePoints<3>(zero, infinity, even, odd, to, to_step);
  }
};
}  // namespace winograd_internal

// Transforms of a line of kSeen points, of which all but 0 and infinity are
// pairs: `pairs` in whole tiles, whose filters these points are of, or one less
// in short ones.
template <int made, int tap, int pairs = (made + tap - 1) / 2 - 1>
struct WinogradLines : WinogradSizes<made, tap> {
  static constexpr int kPairs = (made + tap - 1) / 2 - 1;
  static_assert((pairs == 2 || pairs == 3) && (made + tap) % 2 == 1);
  static_assert(pairs - kPairs <= 1);
  static constexpr winograd_internal::Factors<pairs> kFactors =
      winograd_internal::FactorsOf<pairs>();
  static constexpr float At(int pair) {
    return winograd_internal::kAt<pairs>[pair];
  }
  using Short = WinogradLines<made - 2, tap, pairs>;

  using SeenLine = winograd_internal::Seen<pairs, kPairs>;
  // What polynomials of n terms are there.
  template <int n>
  struct AtPoints {
    static constexpr int kFrom = n, kTo = made + tap - 1;
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* c, V* to,
                                                 int to_step) {
      V even[kPairs], odd[kPairs];
#pragma GCC unroll 3
      for (int p = 0; p < kPairs; ++p) {
        even[p] = c[0];
        odd[p] = At(p) * c[1];
#pragma GCC unroll 3
        for (int i = 2; i < n; ++i) {
          (i % 2 == 0 ? even : odd)[p] +=
              winograd_internal::Power(At(p), i) * c[i];
        }
      }
      winograd_internal::StorePoints<kPairs>(c[0], c[n - 1], even, odd, to,
                                             to_step);
    }
  };
  // The adjoint: n sums over the points.
  template <int n>
  struct OfPoints {
    static constexpr int kFrom = made + tap - 1, kTo = n;
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* m, V* to,
                                                 int to_step) {
      RunTimes<false>(m, to, to_step);
    }
    // With the points' factors, or without.
    template <bool factors, typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void RunTimes(const V* m, V* to,
                                                      int to_step) {
      V sums[n];
#pragma GCC unroll 3
      for (int p = 0; p < kPairs; ++p) {
        const float factor = factors ? kFactors.of[p] : 1;
        const V even = factor * (m[2 * p + 2] + m[2 * p + 3]);
        const V odd = factor * (m[2 * p + 2] - m[2 * p + 3]);
#pragma GCC unroll 5
        for (int i = 0; i < n; ++i) {
          const V term =
              winograd_internal::Power(At(p), i) * (i % 2 == 0 ? even : odd);
          sums[i] = p == 0 ? term : sums[i] + term;
        }
      }
      to[0] = (factors ? kFactors.zero : 1) * m[0] + sums[0];
#pragma GCC unroll 5
      for (int i = 1; i < n; ++i) {
        to[i * to_step] = i < n - 1 ? sums[i] : sums[i] + m[1];
      }
    }
  };
  using MadeLine = AtPoints<made>;
  using ResultLine = OfPoints<made>;
  struct FilterLine : AtPoints<tap> {
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* g, V* to,
                                                 int to_step) {
      AtPoints<tap>::Run(g, to, to_step);
      to[0] *= kFactors.zero;
#pragma GCC unroll 6
      for (int i = 0; i < 2 * kPairs; ++i) {
        to[(i + 2) * to_step] *= kFactors.of[i / 2];
      }
    }
  };
  struct FilterGradLine : OfPoints<tap> {
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* s, V* to,
                                                 int to_step) {
      OfPoints<tap>::template RunTimes<true>(s, to, to_step);
    }
  };
};

template <>
struct WinogradLines<2, 3, 1> : WinogradSizes<2, 3> {
  struct SeenLine {
    static constexpr int kFrom = 4, kTo = 4;
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* d, V* to,
                                                 int to_step) {
      const V d1 = d[1], d2 = d[2];
      to[0] = d[0] - d2;
      to[to_step] = d1 + d2;
      to[2 * to_step] = d2 - d1;
      to[3 * to_step] = d1 - d[3];
    }
  };
  struct MadeLine {
    static constexpr int kFrom = 2, kTo = 4;
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* y, V* to,
                                                 int to_step) {
      const V y0 = y[0], y1 = y[1];
      to[0] = y0;
      to[to_step] = y0 + y1;
      to[2 * to_step] = y0 - y1;
      to[3 * to_step] = -y1;
    }
  };
  struct FilterLine {
    static constexpr int kFrom = 3, kTo = 4;
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* g, V* to,
                                                 int to_step) {
      const V outer = 0.5f * (g[0] + g[2]), inner = 0.5f * g[1];
      to[0] = g[0];
      to[to_step] = outer + inner;
      to[2 * to_step] = outer - inner;
      to[3 * to_step] = g[2];
    }
  };
  struct ResultLine {
    static constexpr int kFrom = 4, kTo = 2;
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* m, V* to,
                                                 int to_step) {
      const V m1 = m[1], m2 = m[2];
      to[0] = m[0] + (m1 + m2);
      to[to_step] = (m1 - m2) - m[3];
    }
  };
  struct FilterGradLine {
    static constexpr int kFrom = 4, kTo = 3;
    template <typename V>
    ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* s, V* to,
                                                 int to_step) {
      const V sum = 0.5f * (s[1] + s[2]);
      to[0] = s[0] + sum;
      to[to_step] = 0.5f * (s[1] - s[2]);
      to[2 * to_step] = sum + s[3];
    }
  };
};

// F(down x across, tap x tap): the transforms of a tile's columns and of its
// lines, points of a tile and taps of a filter.
template <int down, int across, int tap>
struct Winograd {
  using Down = WinogradLines<down, tap>;
  using Across = WinogradLines<across, tap>;
  static constexpr int kTaps = tap * tap;
  static constexpr int kPoints = Down::kSeen * Across::kSeen;
  // Where a point lies among those of a tile, whatever kind that is.
  static constexpr int PointOf(int y, int x) { return y * Across::kSeen + x; }
  // Of those tiles of a range that have a point.
  static WinogradRange TilesWith(const WinogradOrder& order, int point) {
    return order.With({IsLacked<Down>(point / Across::kSeen),
                       IsLacked<Across>(point % Across::kSeen)});
  }
  // Of images.
  using Types = std::conditional_t<(down > 2), LowTypes, TypeList<float>>;

 private:
  template <typename Lines>
  static constexpr bool IsLacked(int i) {
    return Lines::kMadeShort > 0 && i >= Lines::kMadeShort + tap - 1;
  }
};
// What large tiles round is far less than what stores of 16 bits do; f32 takes
// those that round little more than direct sums.
using WinogradOfThree = Winograd<2, 2, 3>;
using LowWinogradOfThree = Winograd<4, 4, 3>;
using WinogradOfFive = Winograd<2, 4, 5>;
using LowWinogradOfFive = Winograd<4, 4, 5>;

namespace winograd_internal {
// body(i) of 0 to n - 1. Lines of eight take a compiler too long to unroll for
// what they gain; with checks of addresses all do.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
inline constexpr int kUnrolledLines = 0;
#else
inline constexpr int kUnrolledLines = 6;
#endif
template <int n, typename Body>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ForLines(const Body& body) {
  if constexpr (n <= kUnrolledLines) {
#pragma GCC unroll 6
    for (int i = 0; i < n; ++i) body(i);
  } else {
#pragma GCC unroll 1
    for (int i = 0; i < n; ++i) body(i);
  }
}
}  // namespace winograd_internal

// Calls body(kind, down, across) with the kinds of tiles and tags of their
// lines.
template <typename W, typename Body>
inline void ForKinds(const Body& body) {
  using Down = typename W::Down;
  using Across = typename W::Across;
  const auto of = [&](bool is_down, auto down) {
    body(WinogradKind{is_down, false}, down, TypeTag<Across>());
    if constexpr (Across::kMadeShort > 0) {
      body(WinogradKind{is_down, true}, down,
           TypeTag<typename Across::Short>());
    }
  };
  of(false, TypeTag<Down>());
  if constexpr (Down::kMadeShort > 0) {
    of(true, TypeTag<typename Down::Short>());
  }
}

// Both dims of Down::kFrom x Across::kFrom vectors: load(y, x, &vector) gives
// them, and store(y, x, vector) takes those that are made. What is between lies
// in memory where there are more vectors than registers; nothing else does.
template <typename Down, typename Across, typename V, typename Load,
          typename Store>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void WinogradTransform(const Load& load,
                                                           const Store& store) {
  constexpr int kFrom = Across::kFrom;
  V half[Down::kTo * kFrom];
  winograd_internal::ForLines<kFrom>([&](int x) {
    V line[Down::kFrom];
#pragma GCC unroll 8
    for (int y = 0; y < Down::kFrom; ++y) load(y, x, &line[y]);
    Down::Run(line, half + x, kFrom);
  });
  winograd_internal::ForLines<Down::kTo>([&](int y) {
    V line[Across::kTo];
    Across::Run(half + y * kFrom, line, 1);
#pragma GCC unroll 8
    for (int x = 0; x < Across::kTo; ++x) store(y, x, line[x]);
  });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_WINOGRAD_H_
