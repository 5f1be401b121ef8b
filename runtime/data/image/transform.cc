#include "runtime/data/image/transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "graph/base/error.h"
#include "graph/base/philox.h"
#include "runtime/data/image/resample.h"

namespace halftone {
namespace runtime {

SampleDraws::SampleDraws(int64_t seed, int64_t epoch, int64_t sample)
    : key_(PhiloxKey(static_cast<uint64_t>(seed), 0xa0670000u)),
      epoch_(static_cast<uint64_t>(epoch)),
      sample_(static_cast<uint64_t>(sample)) {}

double SampleDraws::Uniform() {
  const uint32_t at = next_++;
  return ToUniform(PhiloxDraw(key_, epoch_, sample_, at / 4).x[at % 4]);
}

int64_t SampleDraws::Below(int64_t n) {
  const auto draw = static_cast<int64_t>(Uniform() * 0x1p24) << 24 |
                    static_cast<int64_t>(Uniform() * 0x1p24);
  return static_cast<int64_t>((static_cast<unsigned __int128>(draw) * n) >> 48);
}

double SampleDraws::SymmetricBeta(double a) {
  while (true) {
    const double u = Uniform(), v = Uniform();
    if (a > 1) {
      // Against its density's maximum, at a half.
      if (v <= std::pow(4 * u * (1 - u), a - 1)) return u;
      continue;
    }
    // u^(1/a) and v^(1/a) are 0 for small a: their logarithms are not.
    const double x = std::log(u) / a, y = std::log(v) / a;
    const double larger = std::max(x, y);
    if (!std::isfinite(larger)) continue;
    const double sum = std::exp(x - larger) + std::exp(y - larger);
    if (larger + std::log(sum) <= 0) return std::exp(x - larger) / sum;
  }
}

namespace {

// What becomes a feed: `box` of a picture, and as much around it, `seen`, as
// resizing it looks at.
struct Part {
  RealBox box;
  Box seen;
};

Part CutOutBefore(const Box& box) {
  return {{static_cast<double>(box.x), static_cast<double>(box.y),
           static_cast<double>(box.width), static_cast<double>(box.height)},
          box};
}

// Pixels of all that is seen where the box has no less than the feed.
int64_t Least(int64_t feed, int64_t seen, double box) {
  return std::llround(
      std::ceil(static_cast<double>(feed) * static_cast<double>(seen) / box));
}

// A picture that `may_shrink` is decoded in fewer pixels where the file's kind
// can, though in no fewer than the feed's.
absl::Status DecodeTo(ImageDecoder& decoder, const Part& part, bool may_shrink,
                      const FeedImage& feed, Image* out) {
  const auto& [box, seen] = part;
  Wanted wanted = {seen, feed.channels, seen.width, seen.height};
  if (may_shrink) {
    wanted.least_width = Least(feed.width, seen.width, box.width);
    wanted.least_height = Least(feed.height, seen.height, box.height);
  }
  Image decoded;
  RealBox at;
  HT_RETURN_IF_ERROR(decoder.Decode(wanted, &decoded, &at));
  const double across = at.width / static_cast<double>(seen.width);
  const double down = at.height / static_cast<double>(seen.height);
  const RealBox within = {at.x + (box.x - static_cast<double>(seen.x)) * across,
                          at.y + (box.y - static_cast<double>(seen.y)) * down,
                          box.width * across, box.height * down};
  Resample(decoded, within, at, feed.width, feed.height, out);
  return absl::OkStatus();
}

struct CentreRange {
  double begin = 0, length = 0;  // of the picture
  int64_t first = 0, seen = 0;   // and those that it is made of
};

// Where the `wanted` pixels in the middle of the `resized` come from that
// `side` pixels become.
CentreRange CentreOf(int64_t side, int64_t resized, int64_t wanted) {
  const int64_t rest = resized - wanted, half = rest / 2;
  // Halves to even, as Python's round.
  const int64_t before = half + (rest % 2 != 0 && half % 2 != 0 ? 1 : 0);
  const double step = static_cast<double>(side) / static_cast<double>(resized);
  CentreRange range;
  range.begin = static_cast<double>(before) * step;
  range.length = static_cast<double>(wanted) * step;
  const double reach = std::max(step, 1.0);
  range.first =
      std::max<int64_t>(0, std::llround(std::floor(range.begin - reach)));
  const int64_t end = std::min<int64_t>(
      side, std::llround(std::ceil(range.begin + range.length + reach)));
  range.seen = end - range.first;
  return range;
}

// The part of the picture that the centre of the resized one is made of, as
// torchvision's Resize, which cuts off the long side's fraction, and CenterCrop
// have it.
Part CentrePart(const ImageDecoder& decoder, int64_t eval_resize,
                const FeedImage& feed) {
  const int64_t shorter = std::min(decoder.width(), decoder.height());
  const int64_t shortest =
      eval_resize > 0 ? eval_resize : std::max(feed.width, feed.height);
  const auto centre_of = [&](int64_t side, int64_t wanted) {
    const double resized = static_cast<double>(shortest) *
                           static_cast<double>(side) /
                           static_cast<double>(shorter);
    constexpr double kMost = 0x1p53;  // any side may be asked for
    return CentreOf(side, static_cast<int64_t>(std::min(resized, kMost)),
                    wanted);
  };
  const CentreRange x = centre_of(decoder.width(), feed.width);
  const CentreRange y = centre_of(decoder.height(), feed.height);
  return {{x.begin, y.begin, x.length, y.length},
          {x.first, y.first, x.seen, y.seen}};
}

// Szegedy et al., "Going deeper with convolutions" (2015), as torchvision's
// RandomResizedCrop has it: ten tries, then the centre within the ratios.
Box RandomBox(const ImageDecoder& decoder, const proto::RandomResizedCrop& crop,
              SampleDraws& draws) {
  constexpr int kTries = 10;
  const auto width = static_cast<double>(decoder.width());
  const auto height = static_cast<double>(decoder.height());
  const double low = crop.ratio_min(), high = crop.ratio_max();
  Box box;
  for (int i = 0; i < kTries; ++i) {
    const double area =
        width * height * draws.Uniform(crop.scale_min(), crop.scale_max());
    const double ratio = std::exp(draws.Uniform(std::log(low), std::log(high)));
    box.width = std::llround(std::sqrt(area * ratio));
    box.height = std::llround(std::sqrt(area / ratio));
    if (box.width < 1 || box.width > decoder.width() || box.height < 1 ||
        box.height > decoder.height()) {
      continue;
    }
    box.x = draws.Below(decoder.width() - box.width + 1);
    box.y = draws.Below(decoder.height() - box.height + 1);
    return box;
  }
  box.width = std::llround(std::clamp(height * high, 1.0, width));
  box.height = std::llround(std::clamp(width / low, 1.0, height));
  box.x = (decoder.width() - box.width) / 2;
  box.y = (decoder.height() - box.height) / 2;
  return box;
}

void Mirror(Image* image) {
  for (int64_t y = 0; y < image->height; ++y) {
    uint8_t* left = image->row(y);
    uint8_t* right = left + (image->width - 1) * image->channels;
    for (; left < right; left += image->channels, right -= image->channels) {
      std::swap_ranges(left, left + image->channels, right);
    }
  }
}

uint8_t Pixel(double value) {
  return static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
}

// image = factor * image + (1 - factor) * what stands for none of the property.
void Brighten(double factor, Image* image) {
  std::array<uint8_t, 256> table;
  for (int i = 0; i < 256; ++i) table[i] = Pixel(factor * i);
  for (uint8_t& p : image->pixels) p = table[p];
}

uint8_t Gray(const Image& image, size_t at) {
  return image.channels == 1 ? image.pixels[at]
                             : LumaOf(image.pixels[at], image.pixels[at + 1],
                                      image.pixels[at + 2]);
}

void SetContrast(double factor, Image* image) {
  int64_t sum = 0;
  const auto channels = static_cast<size_t>(image->channels);
  for (size_t i = 0; i < image->pixels.size(); i += channels) {
    sum += Gray(*image, i);
  }
  const double mean =
      std::round(static_cast<double>(sum) /
                 static_cast<double>(image->width * image->height));
  std::array<uint8_t, 256> table;
  for (int i = 0; i < 256; ++i) {
    table[i] = Pixel(factor * i + (1 - factor) * mean);
  }
  for (uint8_t& p : image->pixels) p = table[p];
}

void Saturate(double factor, Image* image) {
  if (image->channels == 1) return;
  const auto own = static_cast<float>(factor), gray = 1 - own;
  for (size_t i = 0; i < image->pixels.size(); i += 3) {
    const float rest = gray * static_cast<float>(Gray(*image, i)) + 0.5f;
    for (size_t c = i; c < i + 3; ++c) {
      const float value = own * static_cast<float>(image->pixels[c]) + rest;
      image->pixels[c] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
    }
  }
}

void Jitter(const proto::ColorJitter& jitter, SampleDraws& draws,
            Image* image) {
  using Change = void (*)(double, Image*);
  std::array<std::pair<Change, double>, 3> changes = {{
      {Brighten, jitter.brightness()},
      {SetContrast, jitter.contrast()},
      {Saturate, jitter.saturation()},
  }};
  for (size_t i = changes.size() - 1; i > 0; --i) {
    std::swap(changes[i], changes[draws.Below(static_cast<int64_t>(i) + 1)]);
  }
  for (const auto& [change, most] : changes) {
    if (most == 0) continue;
    change(draws.Uniform(std::max(0.0, 1 - most), 1 + most), image);
  }
}

// DeVries and Taylor, "Improved regularization of convolutional neural networks
// with cutout" (2017): a square about any pixel, cut off at the border, gray.
void CutOut(int64_t side, SampleDraws& draws, Image* image) {
  constexpr int kGray = 128;
  const int64_t x = draws.Below(image->width), y = draws.Below(image->height);
  const auto part = [side](int64_t centre, int64_t end) {
    return std::pair(std::clamp<int64_t>(centre - side / 2, 0, end),
                     std::clamp<int64_t>(centre - side / 2 + side, 0, end));
  };
  const auto [left, right] = part(x, image->width);
  const auto [top, bottom] = part(y, image->height);
  for (int64_t row = top; row < bottom; ++row) {
    std::fill(image->row(row) + left * image->channels,
              image->row(row) + right * image->channels, kGray);
  }
}

}  // namespace

absl::Status CentreCrop(ImageDecoder& decoder, int64_t eval_resize,
                        const FeedImage& feed, Image* out) {
  return DecodeTo(decoder, CentrePart(decoder, eval_resize, feed),
                  /*may_shrink=*/false, feed, out);
}

absl::Status Augmented(ImageDecoder& decoder, const proto::Augment& augment,
                       const FeedImage& feed, SampleDraws& draws, Image* out) {
  const Part part = augment.has_random_resized_crop()
                        ? CutOutBefore(RandomBox(
                              decoder, augment.random_resized_crop(), draws))
                        : CentrePart(decoder, augment.eval_resize(), feed);
  HT_RETURN_IF_ERROR(DecodeTo(decoder, part, /*may_shrink=*/true, feed, out));
  if (augment.horizontal_flip() > 0 &&
      draws.Uniform() < augment.horizontal_flip()) {
    Mirror(out);
  }
  if (augment.has_color_jitter()) Jitter(augment.color_jitter(), draws, out);
  if (augment.cutout() > 0) CutOut(augment.cutout(), draws, out);
  return absl::OkStatus();
}

void ToPlanes(const Image& image, uint8_t* out) {
  const int64_t n = image.width * image.height;
  const uint8_t* from = image.pixels.data();
  if (image.channels == 1) {
    std::copy_n(from, n, out);
    return;
  }
  for (int64_t i = 0; i < n; ++i, from += 3) {
    out[i] = from[0];
    out[n + i] = from[1];
    out[2 * n + i] = from[2];
  }
}

}  // namespace runtime
}  // namespace halftone
