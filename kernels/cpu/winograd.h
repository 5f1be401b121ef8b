// Winograd's minimal filtering F(2x2, 3x3): a 3x3 convolution makes tiles of
// 2x2 pixels from 4x4 that it sees with 16 products for each pair of channels,
// where windows one by one take 36. Lavin, Gray: Fast Algorithms for
// Convolutional Neural Networks (2015), section 4.1:
//
//   Y = A' [(G g G') * (B' d B)] A
//
// with B' d of a line (d0 - d2, d1 + d2, d2 - d1, d1 - d3), G g (g0,
// (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2) and A' m (m0 + m1 + m2,
// m1 - m2 - m3). The sum over channels is taken between the transforms, as 16
// products of matrices, one for each of the 16 points. The filter's gradient is
// the adjoint: G' [sum over tiles of (A dY A') * (B' d B)] G.
//
// Transforms only add and halve: of normal numbers and 64 to 512 channels the
// error in f32 is 1.2 to 2 times that of direct sums, below 5e-7 of the
// largest. What is not finite in one pixel is so in the whole of its tiles.
#ifndef HALFTONE_KERNELS_CPU_WINOGRAD_H_
#define HALFTONE_KERNELS_CPU_WINOGRAD_H_

#include <cstdint>

#include "absl/base/attributes.h"
#include "kernels/common/conv_shape.h"
#include "kernels/cpu/pack_rows.h"
#include "kernels/cpu/small_product.h"

namespace halftone {
namespace kernels {

inline constexpr int kWinogradTap = 3, kWinogradTaps = 9;
inline constexpr int kWinogradPoints = 16;

// The tiles of images of one size, and what each sees of other ones.
class WinogradTiles {
 public:
  WinogradTiles() = default;
  // Tiles of `made`, which see from `before` pixels before their first one on;
  // along height and width.
  struct Dim {
    int64_t made, seen, before;
    int64_t tiles() const { return (made + 1) / 2; }
  };
  WinogradTiles(int64_t samples, const Dim& height, const Dim& width)
      : samples_(samples), height_(height), width_(width) {}

  int64_t count() const { return samples_ * height_.tiles() * width_.tiles(); }
  // Pixels that are made for nothing, of all: where sizes are odd.
  bool IsWaste() const {
    return 4 * height_.tiles() * width_.tiles() * 100 >
           kMostMade * height_.made * width_.made;
  }
  // Numbers of the pixels that a tile makes (2 x 2) and sees (4 x 4); -1: there
  // is none.
  void Made(int64_t tile, int64_t* pixels) const {
    const Place p = PlaceOf(tile);
    Pixels(p.sample, {height_.made, p.y}, {width_.made, p.x}, 2, pixels);
  }
  void Seen(int64_t tile, int64_t* pixels) const {
    const Place p = PlaceOf(tile);
    Pixels(p.sample, {height_.seen, p.y - height_.before},
           {width_.seen, p.x - width_.before}, 4, pixels);
  }

 private:
  static constexpr int64_t kMostMade = 140;  // of 100
  struct Place {
    int64_t sample, y, x;
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t line = tile / width_.tiles();
    return {line / height_.tiles(), line % height_.tiles() * 2,
            tile % width_.tiles() * 2};
  }
  struct Span {
    int64_t size, first;
    bool Has(int64_t i) const { return first + i >= 0 && first + i < size; }
  };
  static void Pixels(int64_t sample, const Span& h, const Span& w, int each,
                     int64_t* pixels) {
    for (int i = 0; i < each * each; ++i) {
      const int64_t y = i / each, x = i % each;
      pixels[i] = h.Has(y) && w.Has(x)
                      ? (sample * h.size + h.first + y) * w.size + w.first + x
                      : -1;
    }
  }

  int64_t samples_ = 0;
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

struct WinogradRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// B' d B of what tiles see of x, and A dY A' of what they make, where that is
// given: of the channels of a range, whole panels. `x` begins with its first
// pixel and channel.
void TransformSeen(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to);
void TransformMade(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to);

// ---- For bodies of ForIsa. `Line`s transform a line of kFrom vectors.

struct WinogradSeenLine {
  static constexpr int kFrom = 4, kTo = 4;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* d, int step, V* to,
                                               int to_step) {
    const V d1 = d[step], d2 = d[2 * step];
    to[0] = d[0] - d2;
    to[to_step] = d1 + d2;
    to[2 * to_step] = d2 - d1;
    to[3 * to_step] = d1 - d[3 * step];
  }
};
struct WinogradMadeLine {
  static constexpr int kFrom = 2, kTo = 4;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* y, int step, V* to,
                                               int to_step) {
    const V y0 = y[0], y1 = y[step];
    to[0] = y0;
    to[to_step] = y0 + y1;
    to[2 * to_step] = y0 - y1;
    to[3 * to_step] = -y1;
  }
};
struct WinogradFilterLine {
  static constexpr int kFrom = 3, kTo = 4;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* g, int step, V* to,
                                               int to_step) {
    const V outer = 0.5f * (g[0] + g[2 * step]), inner = 0.5f * g[step];
    to[0] = g[0];
    to[to_step] = outer + inner;
    to[2 * to_step] = outer - inner;
    to[3 * to_step] = g[2 * step];
  }
};
struct WinogradResultLine {
  static constexpr int kFrom = 4, kTo = 2;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* m, int step, V* to,
                                               int to_step) {
    const V m1 = m[step], m2 = m[2 * step];
    to[0] = m[0] + (m1 + m2);
    to[to_step] = (m1 - m2) - m[3 * step];
  }
};
struct WinogradFilterGradLine {
  static constexpr int kFrom = 4, kTo = 3;
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Run(const V* s, int step, V* to,
                                               int to_step) {
    const V sum = 0.5f * (s[step] + s[2 * step]);
    to[0] = s[0] + sum;
    to[to_step] = 0.5f * (s[step] - s[2 * step]);
    to[2 * to_step] = sum + s[3 * step];
  }
};

// Both dims of kFrom x kFrom vectors at `x`.
template <typename Line, typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void WinogradTransform(const V* x, V* to) {
  constexpr int kFrom = Line::kFrom, kTo = Line::kTo;
  V half[kTo * kFrom];
#pragma GCC unroll 4
  for (int i = 0; i < kFrom; ++i) Line::Run(x + i, kFrom, half + i, kFrom);
#pragma GCC unroll 4
  for (int i = 0; i < kTo; ++i) {
    Line::Run(half + i * kFrom, 1, to + i * kTo, 1);
  }
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_WINOGRAD_H_
