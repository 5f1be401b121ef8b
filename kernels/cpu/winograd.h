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
#ifndef HALFTONE_KERNELS_CPU_WINOGRAD_H_
#define HALFTONE_KERNELS_CPU_WINOGRAD_H_

#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/pack_rows.h"
#include "kernels/cpu/small_product.h"

namespace halftone {
namespace kernels {

// F(made, tap), of one dim: pixels and points of a tile, taps of a filter.
template <int made, int tap>
struct WinogradSizes {
  static constexpr int kMade = made, kTap = tap, kSeen = made + tap - 1;
};

// The tiles of images of one size, and what each sees of other ones.
class WinogradTiles {
 public:
  WinogradTiles() = default;
  // Tiles of `made`, which see from `before` pixels before their first one on;
  // along height and width.
  struct Dim {
    int64_t made, seen, before;
  };
  // Of lines x columns pixels.
  WinogradTiles(int64_t lines, int64_t columns, int64_t samples,
                const Dim& height, const Dim& width)
      : lines_(lines),
        columns_(columns),
        samples_(samples),
        height_(height),
        width_(width) {}

  int64_t of_sample() const { return TilesDown() * TilesAcross(); }
  int64_t count() const { return samples_ * of_sample(); }
  int64_t pixels_of_sample() const { return height_.made * width_.made; }
  // The first pixel that a tile makes.
  struct Place {
    int64_t sample, y, x;
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t down = TilesDown(), across = TilesAcross();
    const int64_t line = tile / across;
    return {line / down, line % down * lines_, tile % across * columns_};
  }
  // Of the next tile.
  void Advance(Place* place) const {
    place->x += columns_;
    if (place->x < width_.made) return;
    place->x = 0;
    place->y += lines_;
    if (place->y < height_.made) return;
    place->y = 0;
    ++place->sample;
  }
  // Images as tiles see them, or make them: their size, and how many pixels
  // before a tile's place it begins.
  struct View {
    int64_t height, width, before_y, before_x;
  };
  View Seen() const {
    return {height_.seen, width_.seen, height_.before, width_.before};
  }
  View Made() const { return {height_.made, width_.made, 0, 0}; }

 private:
  int64_t TilesDown() const { return (height_.made + lines_ - 1) / lines_; }
  int64_t TilesAcross() const {
    return (width_.made + columns_ - 1) / columns_;
  }

  int64_t lines_ = 1, columns_ = 1, samples_ = 0;
  Dim height_ = {}, width_ = {};
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

struct WinogradRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// B' d B of what tiles see of x, and A dY A' of what they make, where that is
// given: of the channels of a range, whole panels. `x` begins with its first
// pixel and channel. W: a Winograd of those below.
template <typename W>
void TransformSeen(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to);
template <typename W>
void TransformMade(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to);

// ---- For bodies of ForIsa. `Line`s transform a line of kFrom vectors into one
// of kTo, which lie to_step apart.

namespace winograd_internal {
// Polynomials are taken at 0, at these and their negatives, and at infinity.
template <int pairs>
inline constexpr float kAt[pairs] = {};
template <>
inline constexpr float kAt<2>[] = {0.625f, 1.5f};
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

// Even and odd terms differ in sign alone at a point and at its negative.
template <int pairs, typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void StorePoints(const V& first,
                                                     const V* even,
                                                     const V* odd,
                                                     const V& last, V* to,
                                                     int to_step) {
  to[0] = first;
#pragma GCC unroll 3
  for (int p = 0; p < pairs; ++p) {
    to[(2 * p + 1) * to_step] = even[p] + odd[p];
    to[(2 * p + 2) * to_step] = even[p] - odd[p];
  }
  to[(2 * pairs + 1) * to_step] = last;
}

template <int pairs>
struct Seen;
template <>
struct Seen<2> {
  static constexpr int kFrom = 6, kTo = 6;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* d, V* to, int to_step) {
    const V d1 = d[1], d2 = d[2], d3 = d[3];
    const V d4 = d[4];
    constexpr float p = kAt<2>[0], q = kAt<2>[1];
    constexpr float all = p * p * q * q, sum = p * p + q * q;
    const V even[] = {d4 - q * q * d2, d4 - p * p * d2};
    const V odd[] = {p * d3 - p * q * q * d1, q * d3 - q * p * p * d1};
    const V first = (all * d[0] + d4) - sum * d2;
    const V last = (all * d1 + d[5]) - sum * d3;
    StorePoints<2>(first, even, odd, last, to, to_step);
  }
};
template <>
struct Seen<3> {
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
    const V first = (d[0] - d6) + 5.25f * (d4 - d2);
    const V last = (d[7] - d1) + 5.25f * (d3 - d5);
    StorePoints<3>(first, even, odd, last, to, to_step);
  }
};
}  // namespace winograd_internal

// Of six points and of eight: transforms of a line.
template <int made, int tap>
struct WinogradLines : WinogradSizes<made, tap> {
  static constexpr int kPairs = (made + tap - 1) / 2 - 1;
  static_assert((kPairs == 2 || kPairs == 3) && (made + tap) % 2 == 1);
  static constexpr winograd_internal::Factors<kPairs> kFactors =
      winograd_internal::FactorsOf<kPairs>();
  static constexpr float At(int pair) {
    return winograd_internal::kAt<kPairs>[pair];
  }

  using SeenLine = winograd_internal::Seen<kPairs>;
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
      winograd_internal::StorePoints<kPairs>(c[0], even, odd, c[n - 1], to,
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
        const V even = factor * (m[2 * p + 1] + m[2 * p + 2]);
        const V odd = factor * (m[2 * p + 1] - m[2 * p + 2]);
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
        to[i * to_step] = i < n - 1 ? sums[i] : sums[i] + m[kFrom - 1];
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
        to[(i + 1) * to_step] *= kFactors.of[i / 2];
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
struct WinogradLines<2, 3> : WinogradSizes<2, 3> {
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
  // Of images.
  using Types = std::conditional_t<(down > 2), LowTypes, TypeList<float>>;
};
// What large tiles round is far less than what stores of 16 bits do; f32 takes
// those that round little more than direct sums.
using WinogradOfThree = Winograd<2, 2, 3>;
using LowWinogradOfThree = Winograd<4, 4, 3>;
using WinogradOfFive = Winograd<2, 4, 5>;
using LowWinogradOfFive = Winograd<4, 4, 5>;

namespace winograd_internal {
// body(i) of 0 to n - 1. Lines of eight take a compiler too long to unroll for
// what they gain.
template <int n, typename Body>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ForLines(const Body& body) {
  if constexpr (n <= 6) {
#pragma GCC unroll 6
    for (int i = 0; i < n; ++i) body(i);
  } else {
#pragma GCC unroll 1
    for (int i = 0; i < n; ++i) body(i);
  }
}
}  // namespace winograd_internal

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
