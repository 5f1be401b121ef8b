#include "kernels/cpu/winograd.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/pixel_source.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace {

// Lines of kSide pixels from `first` on, of which images of `size` have some.
template <int kSide>
unsigned PixelsInside(int64_t first, int64_t size) {
  unsigned inside = 0;
  for (int i = 0; i < kSide; ++i) {
    inside |= static_cast<unsigned>(first + i >= 0 && first + i < size) << i;
  }
  return inside;
}

// Points of the tiles of a range. Where all pixels of a tile are in the image,
// none is asked for.
template <typename Line>
void TransformTiles(const PixelRows& x, const WinogradTiles& tiles,
                    const WinogradTiles::View& view, WinogradRange range,
                    WinogradRange channels, const WinogradPoints& to) {
  if (range.size() <= 0) return;
  const int64_t pixel = x.stride, line = view.width * pixel;
  ForPixelSource(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      using V = WideVector<Low::kSize>;
      constexpr int kSide = Line::kFrom;
      constexpr unsigned kAll = (1u << kSide) - 1;
      // What is stored may not be taken for these.
      const auto pixels = source;
      const WinogradPoints points_of = to;
      const int64_t point = to.point;
      WinogradTiles::Place place = tiles.PlaceOf(range.begin);
      for (int64_t t = range.begin; t < range.end; ++t) {
        const int64_t y = place.y - view.before_y,
                      left = place.x - view.before_x;
        const int64_t first =
            (place.sample * view.height + y) * line + left * pixel;
        const unsigned rows = PixelsInside<kSide>(y, view.height);
        const unsigned columns = PixelsInside<kSide>(left, view.width);
        for (int64_t c = channels.begin; c < channels.end; c += Low::kSize) {
          const int64_t from = first + c;
          float* const row = points_of.At(t - range.begin, c - channels.begin);
          const auto load = [&](int i, V* to) {
            pixels.template Load<Low>(
                from + i / kSide * line + i % kSide * pixel, c,
                reinterpret_cast<float*>(to));
          };
          const auto store = [=](int i, const V& made) {
            *reinterpret_cast<V*>(row + i * point) = made;
          };
          if (rows == kAll && columns == kAll) {
            WinogradTransform<Line, V>(load, store);
          } else {
            WinogradTransform<Line, V>(
                [&](int i, V* to) {
                  const bool inside =
                      (rows >> (i / kSide) & columns >> (i % kSide) & 1) != 0;
                  *to = V{};
                  if (inside) load(i, to);
                },
                store);
          }
        }
        tiles.Advance(&place);
      }
    });
  });
}

}  // namespace

template <int kTap>
void TransformSeen(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to) {
  using W = Winograd<kTap>;
  TransformTiles<typename W::SeenLine>(x, tiles, tiles.Seen(), range, channels,
                                       to);
}

template <int kTap>
void TransformMade(const WinogradTiles& tiles, const PixelRows& x,
                   WinogradRange range, WinogradRange channels,
                   const WinogradPoints& to) {
  using W = Winograd<kTap>;
  TransformTiles<typename W::MadeLine>(x, tiles, tiles.Made(), range, channels,
                                       to);
}

#define HT_WINOGRAD(kTap)                                                   \
  template void TransformSeen<kTap>(const WinogradTiles&, const PixelRows&, \
                                    WinogradRange, WinogradRange,           \
                                    const WinogradPoints&);                 \
  template void TransformMade<kTap>(const WinogradTiles&, const PixelRows&, \
                                    WinogradRange, WinogradRange,           \
                                    const WinogradPoints&)
HT_WINOGRAD(3);
HT_WINOGRAD(5);
#undef HT_WINOGRAD

}  // namespace kernels
}  // namespace halftone
