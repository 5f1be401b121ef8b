#include "kernels/cpu/winograd.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/pixel_source.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace {

// Bit i: whether pixel first + i is one of `size`.
template <int n>
unsigned PixelsInside(int64_t first, int64_t size) {
  unsigned inside = 0;
  for (int i = 0; i < n; ++i) {
    inside |= static_cast<unsigned>(first + i >= 0 && first + i < size) << i;
  }
  return inside;
}

template <typename W, bool norm>
struct TilePixels : SinglePixels {
  using Types = typename W::Types;
  static constexpr bool kNorm = norm;
};

// Which transform of a line.
struct OfSeen {
  template <typename Lines>
  using Line = typename Lines::SeenLine;
};
struct OfMade {
  template <typename Lines>
  using Line = typename Lines::MadeLine;
};

// Points of the tiles of a kind.
template <typename Down, typename Across, typename W, typename Pixels>
void TransformKind(const PixelRows& x, const WinogradTiles& tiles,
                   const WinogradTiles::View& view, const WinogradOrder& order,
                   WinogradKind kind, WinogradRange channels,
                   const WinogradPoints& to) {
  const WinogradRange range = order.range();
  const int64_t first_of_kind = order.Of(kind).begin;
  const int64_t pixel = x.stride, line = view.width * pixel;
  ForPixelSource<Pixels>(x, [=](const auto& source) {
    ForIsa([=](auto isa) {
      using Low = LowVector<decltype(isa)::value>;
      using V = WideVector<Low::kSize>;
      // What is stored may not be taken for these.
      const auto pixels = source;
      const WinogradPoints points_of = to;
      const int64_t point = to.point;
      int64_t at = first_of_kind;
      WinogradTiles::Place place = tiles.PlaceOf(range.begin);
      for (int64_t t = range.begin; t < range.end; ++t, tiles.Advance(&place)) {
        if (tiles.KindOf(place) != kind) continue;
        const int64_t top = place.y - view.before_y;
        const int64_t left = place.x - view.before_x;
        const int64_t first =
            (place.sample * view.height + top) * line + left * pixel;
        const unsigned rows = PixelsInside<Down::kFrom>(top, view.height);
        const unsigned columns = PixelsInside<Across::kFrom>(left, view.width);
        for (int64_t c = channels.begin; c < channels.end; c += Low::kSize) {
          const int64_t from = first + c;
          float* const row = points_of.At(at, c - channels.begin);
          WinogradTransform<Down, Across, V>(
              [&](int y, int x, V* to) {
                *to = V{};
                if ((rows >> y & columns >> x & 1) == 0) return;
                pixels.template Load<Low>(from + y * line + x * pixel, c,
                                          reinterpret_cast<float*>(to));
              },
              [=](int y, int x, const V& made) {
                *reinterpret_cast<V*>(row + W::PointOf(y, x) * point) = made;
              });
        }
        ++at;
      }
    });
  });
}

template <typename Of, typename W, typename Pixels>
void TransformTiles(const PixelRows& x, const WinogradTiles& tiles,
                    const WinogradTiles::View& view, const WinogradOrder& order,
                    WinogradRange channels, const WinogradPoints& to) {
  ForKinds<W>([&](WinogradKind kind, auto down, auto across) {
    if (order.Of(kind).size() == 0) return;
    TransformKind<typename Of::template Line<typename decltype(down)::type>,
                  typename Of::template Line<typename decltype(across)::type>,
                  W, Pixels>(x, tiles, view, order, kind, channels, to);
  });
}

}  // namespace

template <typename W>
void TransformSeen(const WinogradTiles& tiles, const PixelRows& x,
                   const WinogradOrder& order, WinogradRange channels,
                   const WinogradPoints& to) {
  TransformTiles<OfSeen, W, TilePixels<W, /*norm=*/true>>(
      x, tiles, tiles.Seen(), order, channels, to);
}

template <typename W>
void TransformMade(const WinogradTiles& tiles, const PixelRows& x,
                   const WinogradOrder& order, WinogradRange channels,
                   const WinogradPoints& to) {
  TransformTiles<OfMade, W, TilePixels<W, /*norm=*/false>>(
      x, tiles, tiles.Made(), order, channels, to);
}

#define HT_WINOGRAD(W)                                                   \
  template void TransformSeen<W>(const WinogradTiles&, const PixelRows&, \
                                 const WinogradOrder&, WinogradRange,    \
                                 const WinogradPoints&);                 \
  template void TransformMade<W>(const WinogradTiles&, const PixelRows&, \
                                 const WinogradOrder&, WinogradRange,    \
                                 const WinogradPoints&)
HT_WINOGRAD(WinogradOfThree);
HT_WINOGRAD(LowWinogradOfThree);
HT_WINOGRAD(WinogradOfFive);
HT_WINOGRAD(LowWinogradOfFive);
#undef HT_WINOGRAD

}  // namespace kernels
}  // namespace halftone
