#include "kernels/cpu/winograd.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/pixel_source.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace {

// `pixels(tile, numbers)` gives those of a tile.
template <typename Line, typename Pixels>
void TransformTiles(const PixelRows& x, WinogradRange range,
                    WinogradRange channels, const WinogradPoints& to,
                    const Pixels& pixels) {
  const int64_t pixel = x.stride;
  ForPixelSource(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      using V = WideVector<Low::kSize>;
      constexpr int kEach = Line::kFrom * Line::kFrom;
      for (int64_t t = range.begin; t < range.end; ++t) {
        int64_t at[kEach];
        pixels(t, at);
        for (int64_t c = channels.begin; c < channels.end; c += Low::kSize) {
          V seen[kEach], points[kWinogradPoints];
#pragma GCC unroll 16
          for (int i = 0; i < kEach; ++i) {
            if (at[i] < 0) {
              seen[i] = V{};
            } else {
              source.template Load<Low>(at[i] * pixel + c, c,
                                        reinterpret_cast<float*>(&seen[i]));
            }
          }
          WinogradTransform<Line>(seen, points);
          float* const row = to.At(t - range.begin, c - channels.begin);
#pragma GCC unroll 16
          for (int i = 0; i < kWinogradPoints; ++i) {
            *reinterpret_cast<V*>(row + i * to.point) = points[i];
          }
        }
      }
    });
  });
}

}  // namespace

void TransformSeen(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to) {
  TransformTiles<WinogradSeenLine>(
      x, range, channels, to,
      [tiles](int64_t t, int64_t* at) { tiles.Seen(t, at); });
}

void TransformMade(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to) {
  TransformTiles<WinogradMadeLine>(
      x, range, channels, to,
      [tiles](int64_t t, int64_t* at) { tiles.Made(t, at); });
}

}  // namespace kernels
}  // namespace halftone
