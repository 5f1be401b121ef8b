#include "kernels/cpu/channels.h"

#include <algorithm>
#include <cstdint>

#include "graph/base/layout.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"

namespace halftone {
namespace kernels {
namespace {

// Rows of a chunk hold about this many elements per channel: so few that f32
// sums of squares about any one of them lose next to nothing (n * n roundings
// if that one is an outlier).
constexpr int64_t kChunkElements = 64;

// Channels that are combined together.
constexpr int64_t kCombine = 128;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Clamp(int64_t x, int64_t low, int64_t high) {
  return std::max(low, std::min(x, high));
}

}  // namespace

Channels::Channels(const TensorDesc& x)
    : rows_(x.dims[0]), channels_(x.dims[1]) {
  int64_t image = 1;
  for (int i = 2; i < x.rank(); ++i) image *= x.dims[i];
  (x.layout == Layout::kChannelsLast ? rows_ : inner_) *= image;
  if (rows_ * channels_ * inner_ == 0) {
    rows_ = 0;
    inner_ = 1;
  }
  tile_inner_ = std::min(inner_, kConvertBlock);
  tile_channels_ =
      Clamp(kConvertBlock / inner_, 1, std::max<int64_t>(1, channels_));
  if (tile_channels_ == channels_) {
    const int64_t most = std::max<int64_t>(1, kChunkElements / inner_);
    tile_rows_ = Clamp(kConvertBlock / (channels_ * inner_), 1, most);
  }
  rows_per_chunk_ =
      CeilDiv(std::max<int64_t>(1, kChunkElements / inner_), tile_rows_) *
      tile_rows_;
  chunks_ = CeilDiv(rows_, rows_per_chunk_);
}

void Channels::Moments(DType dtype, const void* x, float* mean, float* variance,
                       float* workspace, int threads) const {
  const Summed summed[] = {{x, /*shift=*/nullptr, workspace}};
  Reduce<Deviations>(dtype, summed, Loaded{dtype, nullptr}, threads);
  CombineMoments(workspace, mean, variance, threads);
}

template <typename Body>
void Channels::ForChannels(int threads, const Body& body) const {
  ParallelFor(threads, CeilDiv(channels_, kCombine),
              std::max<int64_t>(1, kMapGrain / (kCombine * (chunks_ + 1))),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t c0 = i * kCombine;
                  body(c0, std::min(kCombine, channels_ - c0));
                }
              });
}

void Channels::CombineSums(const float* partial, float* first, float* second,
                           int threads) const {
  ForChannels(threads, [&](int64_t c0, int64_t n) {
    double a[kCombine] = {}, b[kCombine] = {};
    const float* p = partial + c0;
    ForIsa([&, chunks = chunks_, channels = channels_, plane = plane()] {
      for (int64_t k = 0; k < chunks; ++k) {
        const float* const x = p + k * channels;
        for (int64_t c = 0; c < n; ++c) {
          a[c] += static_cast<double>(x[c]);
          b[c] += static_cast<double>(x[plane + c]);
        }
      }
    });
    for (int64_t c = 0; c < n && first != nullptr; ++c) {
      first[c0 + c] = static_cast<float>(a[c]);
    }
    for (int64_t c = 0; c < n && second != nullptr; ++c) {
      second[c0 + c] = static_cast<float>(b[c]);
    }
  });
}

// functors::Moments::Take for many channels at once.
void Channels::CombineMoments(const float* partial, float* mean,
                              float* variance, int threads) const {
  ForChannels(threads, [&](int64_t c0, int64_t n) {
    double m[kCombine] = {}, m2[kCombine] = {};
    double seen = 0;
    for (int64_t k = 0; k < chunks_; ++k) {
      const float* const p = partial + k * channels_ + c0;
      const double count = static_cast<double>(ChunkRows(k) * inner_);
      const double share = count / (seen + count);
      ForIsa([&, plane = plane(), before = seen] {
        const float* const q = p + plane;
        const float* const shift = q + plane;
#pragma GCC ivdep
        for (int64_t c = 0; c < n; ++c) {
          const double mean_of_chunk =
              static_cast<double>(shift[c]) + static_cast<double>(p[c]);
          const double delta = mean_of_chunk - m[c];
          m[c] += delta * share;
          m2[c] += static_cast<double>(q[c]) + delta * delta * share * before;
        }
      });
      seen += count;
    }
    for (int64_t c = 0; c < n; ++c) {
      mean[c0 + c] = static_cast<float>(m[c]);
      variance[c0 + c] = seen == 0 ? 0.0f : static_cast<float>(m2[c] / seen);
    }
  });
}

namespace channels_internal {

void FirstMeans(DType dtype, const void* x, int64_t at, int64_t channels,
                int64_t inner, float* shift) {
  constexpr int64_t kFirst = 64;  // near the mean, as far as deviations go
  alignas(64) float buffer[kConvertBlock];
  if (inner == 1) {
    std::copy_n(LoadBlock(dtype, x, at, channels, buffer), channels, shift);
    return;
  }
  const int64_t n = std::min(inner, kFirst);
  for (int64_t c = 0; c < channels; ++c) {
    const float* const first = LoadBlock(dtype, x, at + c * inner, n, buffer);
    ForIsa([=] {
      shift[c] =
          SumOf(n, [=](int64_t i) { return first[i]; }) / static_cast<float>(n);
    });
  }
}

void ToMoments(int64_t channels, int64_t count, float* first, float* second) {
  const float n = static_cast<float>(count);
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      const float m = first[c] / n;
      const float m2 = second[c] - first[c] * m;
      first[c] = m;
      second[c] = m2 < 0.0f ? 0.0f : m2;  // a NaN stays one
    }
  });
}

}  // namespace channels_internal

}  // namespace kernels
}  // namespace halftone
