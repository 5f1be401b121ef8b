// Winograd's minimal filtering: F(2x2, 3x3) makes tiles of 2x2 pixels from 4x4
// that it sees with 16 products for each pair of channels, where windows of a
// 3x3 convolution one by one take 36; F(4x4, 3x3) and F(2x2, 5x5) see 6x6 and
// take 36 in place of 144 and 100, F(4x4, 5x5) sees 8x8 and takes 64 in place
// of 400. Lavin, Gray: Fast Algorithms for Convolutional Neural Networks
// (2015), section 4.1:
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
// of the largest. Of six points polynomials are taken at 0, 1/2, -1/2, 2, -2
// and infinity: of F(2x2, 5x5) and 16 to 256 channels the error is 1.8 to 2.2
// times that of direct sums (with 1 and -1 in place of the halves, 1.9 to 4.3);
// of F(4x4, 3x3) and 64 to 512 channels 4 to 7 times, below 3e-6 of the largest
// (with 1 and -1, 6 to 15). Of eight points 1 and -1 are added: of F(4x4, 5x5)
// and 16 to 256 channels 3 to 6 times, below 8e-6 of the largest. What is not
// finite in one pixel is so in the whole of its tiles.
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

// F(made x made, tap x tap): pixels and points of a tile, taps of a filter.
template <int made, int tap>
struct WinogradSizes {
  static constexpr int kMade = made, kTap = tap, kTaps = tap * tap;
  static constexpr int kSeen = made + tap - 1, kPoints = kSeen * kSeen;
  // Of images: what large tiles round is far less than what stores of 16 bits
  // do.
  using Types = std::conditional_t<(made > 2), LowTypes, TypeList<float>>;
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
  // Of side x side pixels.
  WinogradTiles(int64_t side, int64_t samples, const Dim& height,
                const Dim& width)
      : side_(side), samples_(samples), height_(height), width_(width) {}

  int64_t of_sample() const { return TilesOf(height_) * TilesOf(width_); }
  int64_t count() const { return samples_ * of_sample(); }
  int64_t pixels_of_sample() const { return height_.made * width_.made; }
  // The first pixel that a tile makes.
  struct Place {
    int64_t sample, y, x;
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t lines = TilesOf(height_), columns = TilesOf(width_);
    const int64_t line = tile / columns;
    return {line / lines, line % lines * side_, tile % columns * side_};
  }
  // Of the next tile.
  void Advance(Place* place) const {
    place->x += side_;
    if (place->x < width_.made) return;
    place->x = 0;
    place->y += side_;
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
  int64_t TilesOf(const Dim& dim) const {
    return (dim.made + side_ - 1) / side_;
  }

  int64_t side_ = 2, samples_ = 0;
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

// Polynomials are taken at 0, at the first kPairs of these and their negatives,
// and at infinity.
inline constexpr float kWinogradPoints[] = {0.5f, 2, 1};

namespace winograd_internal {
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
    const V even[] = {d4 - 4.0f * d2, d4 - 0.25f * d2};
    const V odd[] = {0.5f * d3 - 2.0f * d1, 2.0f * d3 - 0.5f * d1};
    const V first = (d[0] + d4) - 4.25f * d2, last = (d1 + d[5]) - 4.25f * d3;
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

// Of six points and of eight.
template <int made, int tap>
struct Winograd : WinogradSizes<made, tap> {
  static constexpr int kPairs = (made + tap - 1) / 2 - 1;
  static_assert((kPairs == 2 || kPairs == 3) && (made + tap) % 2 == 1);
  // Of a pair of points: the product of what each is apart from the others, to
  // the power of -1.
  static constexpr float Factor(int pair) {
    constexpr float kSix[] = {-8.0f / 15, 1.0f / 30};
    constexpr float kEight[] = {32.0f / 45, 1.0f / 90, -2.0f / 9};
    return kPairs == 2 ? kSix[pair] : kEight[pair];
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
        odd[p] = kWinogradPoints[p] * c[1];
#pragma GCC unroll 3
        for (int i = 2; i < n; ++i) {
          (i % 2 == 0 ? even : odd)[p] +=
              winograd_internal::Power(kWinogradPoints[p], i) * c[i];
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
        const float factor = factors ? Factor(p) : 1;
        const V even = factor * (m[2 * p + 1] + m[2 * p + 2]);
        const V odd = factor * (m[2 * p + 1] - m[2 * p + 2]);
#pragma GCC unroll 5
        for (int i = 0; i < n; ++i) {
          const V term = winograd_internal::Power(kWinogradPoints[p], i) *
                         (i % 2 == 0 ? even : odd);
          sums[i] = p == 0 ? term : sums[i] + term;
        }
      }
      to[0] = m[0] + sums[0];
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
#pragma GCC unroll 6
      for (int i = 0; i < 2 * kPairs; ++i) {
        to[(i + 1) * to_step] *= Factor(i / 2);
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
struct Winograd<2, 3> : WinogradSizes<2, 3> {
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

// Both dims of kFrom x kFrom vectors: load(y, x, &vector) gives them, and
// store(y, x, vector) takes those that are made. What is between lies in memory
// where there are more vectors than registers; nothing else does.
template <typename Line, typename V, typename Load, typename Store>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void WinogradTransform(const Load& load,
                                                           const Store& store) {
  constexpr int kFrom = Line::kFrom, kTo = Line::kTo;
  V half[kTo * kFrom];
  winograd_internal::ForLines<kFrom>([&](int x) {
    V line[kFrom];
#pragma GCC unroll 8
    for (int y = 0; y < kFrom; ++y) load(y, x, &line[y]);
    Line::Run(line, half + x, kFrom);
  });
  winograd_internal::ForLines<kTo>([&](int y) {
    V line[kTo];
    Line::Run(half + y * kFrom, line, 1);
#pragma GCC unroll 8
    for (int x = 0; x < kTo; ++x) store(y, x, line[x]);
  });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_WINOGRAD_H_
