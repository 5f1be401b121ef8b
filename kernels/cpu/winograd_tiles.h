// Where the tiles of Winograd's filtering (winograd.h) lie in images, and in
// what order they are transformed and multiplied.
#ifndef HALFTONE_KERNELS_CPU_WINOGRAD_TILES_H_
#define HALFTONE_KERNELS_CPU_WINOGRAD_TILES_H_

#include <cstdint>

namespace halftone {
namespace kernels {

struct WinogradRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// In which dims a tile is short: the last one of a dim whose pixels that are
// left are no more than a short one makes.
struct WinogradKind {
  bool down = false, across = false;

  bool operator!=(const WinogradKind& other) const {
    return down != other.down || across != other.across;
  }
};

// The tiles of images of one size, and what each sees of other ones.
class WinogradTiles {
 public:
  WinogradTiles() = default;
  // Of one dim of images: the pixels that are made and seen, and how many
  // before its first one a tile sees.
  struct Dim {
    int64_t made, seen, before;
  };
  // Of one dim of tiles: the pixels that they make, whole or short; 0 where
  // none is short.
  struct Sizes {
    int64_t whole, few;
  };
  struct Line {
    Dim image;
    Sizes tile;

    bool IsShort(int64_t first) const { return image.made - first <= tile.few; }
    int64_t tiles() const { return (image.made + tile.whole - 1) / tile.whole; }
  };
  // Of F(W).
  template <typename W>
  static WinogradTiles Of(int64_t samples, const Dim& height,
                          const Dim& width) {
    WinogradTiles tiles;
    tiles.samples_ = samples;
    tiles.down_ = {height, {W::Down::kMade, W::Down::kMadeShort}};
    tiles.across_ = {width, {W::Across::kMade, W::Across::kMadeShort}};
    return tiles;
  }

  int64_t of_sample() const { return down_.tiles() * across_.tiles(); }
  int64_t count() const { return samples_ * of_sample(); }
  int64_t pixels_of_sample() const {
    return down_.image.made * across_.image.made;
  }
  // The first pixel that a tile makes.
  struct Place {
    int64_t sample, y, x;
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t down = down_.tiles(), across = across_.tiles();
    const int64_t line = tile / across;
    return {line / down, line % down * down_.tile.whole,
            tile % across * across_.tile.whole};
  }
  // Of the next tile.
  void Advance(Place* place) const {
    place->x += across_.tile.whole;
    if (place->x < across_.image.made) return;
    place->x = 0;
    place->y += down_.tile.whole;
    if (place->y < down_.image.made) return;
    place->y = 0;
    ++place->sample;
  }
  WinogradKind KindOf(const Place& place) const {
    return {down_.IsShort(place.y), across_.IsShort(place.x)};
  }
  // Images as tiles see them, or make them: their size, and how many pixels
  // before a tile's place it begins.
  struct View {
    int64_t height, width, before_y, before_x;
  };
  View Seen() const {
    return {down_.image.seen, across_.image.seen, down_.image.before,
            across_.image.before};
  }
  View Made() const { return {down_.image.made, across_.image.made, 0, 0}; }

 private:
  int64_t samples_ = 0;
  Line down_ = {}, across_ = {};
};

// A range of tiles in the order in which each point has its tiles side by side:
// those that are short across, whole ones, those that are short down, those
// that are short in both.
class WinogradOrder {
 public:
  WinogradOrder(const WinogradTiles& tiles, WinogradRange range)
      : range_(range) {
    WinogradTiles::Place place = tiles.PlaceOf(range.begin);
    int64_t counts[kKinds] = {};
    for (int64_t t = range.begin; t < range.end; ++t, tiles.Advance(&place)) {
      ++counts[IndexOf(tiles.KindOf(place))];
    }
    for (int i = 0; i < kKinds; ++i) begin_[i + 1] = begin_[i] + counts[i];
  }

  WinogradRange range() const { return range_; }
  // The places of those of a kind, which are in the order of the range.
  WinogradRange Of(WinogradKind kind) const {
    return {begin_[IndexOf(kind)], begin_[IndexOf(kind) + 1]};
  }
  // The tiles that have a point which short ones lack in some dims.
  WinogradRange With(WinogradKind lacking) const {
    if (lacking.across) {
      return {begin_[1], lacking.down ? begin_[2] : begin_[3]};
    }
    return {0, lacking.down ? begin_[2] : begin_[4]};
  }

 private:
  static constexpr int kKinds = 4;
  static int IndexOf(WinogradKind kind) {
    return kind.down ? kind.across ? 3 : 2 : kind.across ? 0 : 1;
  }

  WinogradRange range_;
  int64_t begin_[kKinds + 1] = {};
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_WINOGRAD_TILES_H_
