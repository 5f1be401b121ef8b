#include "runtime/data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halftone {
namespace runtime {
namespace {

// Weights are integers with so many bits of fraction: 255 times one, summed,
// stays within 32 bits.
constexpr int kBits = 14;
constexpr int32_t kHalf = 1 << (kBits - 1);

// What each output is made of: weight[i * most + k] times input first[i] + k.
struct Taps {
  int64_t most = 0;
  std::vector<int64_t> first, count;
  std::vector<int16_t> weight;
};

struct Range {
  double begin, length;
};

Taps TapsOf(const Range& part, const Range& seen, int64_t in, int64_t out) {
  const auto [begin, length] = part;
  const double step = length / static_cast<double>(out);
  const double support = std::max(step, 1.0);
  Taps taps;
  taps.most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  taps.first.resize(out);
  taps.count.resize(out);
  taps.weight.assign(out * taps.most, 0);
  std::vector<double> exact(taps.most);
  const auto first = std::max<int64_t>(0, std::llround(std::floor(seen.begin)));
  const auto end =
      std::min<int64_t>(in, std::llround(std::ceil(seen.begin + seen.length)));
  for (int64_t i = 0; i < out; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * step;
    const int64_t low = std::max<int64_t>(
        first, std::llround(std::floor(centre - support + 0.5)));
    const int64_t high = std::min<int64_t>(
        end, std::llround(std::floor(centre + support + 0.5)));
    double sum = 0;
    for (int64_t k = low; k < high; ++k) {
      const double away = std::abs(static_cast<double>(k) + 0.5 - centre);
      exact[k - low] = std::max(0.0, 1 - away / support);
      sum += exact[k - low];
    }
    taps.first[i] = low;
    taps.count[i] = high - low;
    // The largest takes what rounding leaves: they sum up to one exactly.
    int64_t left = 1 << kBits, largest = 0;
    int16_t* const weight = &taps.weight[i * taps.most];
    for (int64_t k = 0; k < high - low; ++k) {
      weight[k] =
          static_cast<int16_t>(std::lround(exact[k] / sum * (1 << kBits)));
      left -= weight[k];
      if (weight[k] > weight[largest]) largest = k;
    }
    weight[largest] = static_cast<int16_t>(weight[largest] + left);
  }
  return taps;
}

// One row of the result, of the rows that it takes.
void Mix(const Image& in, const Taps& taps, int64_t y, int64_t begin, int64_t n,
         int32_t* __restrict sums, uint8_t* __restrict out) {
  std::fill_n(sums, n, kHalf);
  for (int64_t k = 0; k < taps.count[y]; ++k) {
    const uint8_t* __restrict from = in.row(taps.first[y] + k) + begin;
    const int32_t weight = taps.weight[y * taps.most + k];
    for (int64_t i = 0; i < n; ++i) sums[i] += weight * from[i];
  }
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<uint8_t>(sums[i] >> kBits);
}

template <int kChannels>
void Shrink(const uint8_t* in, const Taps& taps, int64_t first, int64_t width,
            uint8_t* out) {
  for (int64_t x = 0; x < width; ++x) {
    const uint8_t* from = in + (taps.first[x] - first) * kChannels;
    const int16_t* weight = &taps.weight[x * taps.most];
    int32_t sum[kChannels];
    std::fill_n(sum, kChannels, kHalf);
    for (int64_t k = 0; k < taps.count[x]; ++k) {
      for (int c = 0; c < kChannels; ++c) {
        sum[c] += weight[k] * from[k * kChannels + c];
      }
    }
    for (int c = 0; c < kChannels; ++c) {
      *out++ = static_cast<uint8_t>(sum[c] >> kBits);
    }
  }
}

}  // namespace

// Rows first: that is a loop over neighbours, and leaves the other direction
// fewer rows to do.
void Resample(const Image& in, const RealBox& box, const RealBox& seen,
              int64_t width, int64_t height, Image* out) {
  const Taps across =
      TapsOf({box.x, box.width}, {seen.x, seen.width}, in.width, width);
  const Taps down =
      TapsOf({box.y, box.height}, {seen.y, seen.height}, in.height, height);
  const int64_t first = across.first.front();
  const int64_t columns = across.first.back() + across.count.back() - first;
  out->Resize(width, height, in.channels);
  std::vector<int32_t> sums(columns * in.channels);
  std::vector<uint8_t> line(columns * in.channels);
  for (int64_t y = 0; y < height; ++y) {
    Mix(in, down, y, first * in.channels, static_cast<int64_t>(line.size()),
        sums.data(), line.data());
    if (in.channels == 1) {
      Shrink<1>(line.data(), across, first, width, out->row(y));
    } else {
      Shrink<3>(line.data(), across, first, width, out->row(y));
    }
  }
}

}  // namespace runtime
}  // namespace halftone
