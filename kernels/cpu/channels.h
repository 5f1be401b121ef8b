// Loops over tensors of channels ([N, C, ...] in either layout): sums per
// channel in one fixed order, and element-wise work with numbers per channel.
#ifndef HALFTONE_KERNELS_CPU_CHANNELS_H_
#define HALFTONE_KERNELS_CPU_CHANNELS_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/bound_op.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/sums.h"

namespace halftone {
namespace kernels {

// Memory as [rows][channels][inner]; channels_last and rank 2: inner is 1.
// Sums are made per chunk of rows, then over the chunks in order; both are cut
// by the shape alone. A tile lies in one piece and holds at most a block.
class Channels {
 public:
  explicit Channels(const TensorDesc& x);

  int64_t channels() const { return channels_; }
  // Elements per channel.
  int64_t count() const { return rows_ * inner_; }
  int64_t chunks() const { return chunks_; }
  // What Sum and Moments need.
  int64_t workspace_floats() const { return 3 * chunks_ * channels_; }

  // What is summed about `shift` ([channels]; null: a shift of each chunk) into
  // `partial`, of workspace_floats.
  struct Summed {
    const void* x;
    const float* shift;
    float* partial;
  };

  // first[c], second[c] = the sums over channel c's elements of F::First(x,
  // y, shift[c]) and F::Second(...). `y` has x's dtype and layout, or is null.
  template <typename F>
  void Sum(DType dtype, const void* x, const void* y, const float* shift,
           float* first, float* second, float* workspace, int threads) const {
    const Summed summed[] = {{x, shift, workspace}};
    Reduce<F>(dtype, summed, Loaded{dtype, y}, threads);
    CombineSums(workspace, first, second);
  }

  // The partial sums of several x of one dtype and layout with one y, of which
  // `y`(at, n, buffer, x) gives elements [at, at + n), in `buffer` or
  // elsewhere; each is asked for once. CombineSums makes results of them.
  template <typename F, typename Y>
  void Reduce(DType dtype, absl::Span<const Summed> summed, const Y& y,
              int threads) const;
  // Either result may be null: nobody wants it.
  void CombineSums(const float* partial, float* first, float* second) const;

  // The mean and the biased variance of each channel; 0 of nothing. Chunks
  // are summed about a mean of their first elements, so that little cancels.
  void Moments(DType dtype, const void* x, float* mean, float* variance,
               float* workspace, int threads) const;

  // A part of the tensor that lies in one piece: [rows][channels][inner] from
  // element `at` and from `channel` on, at most a block of elements.
  struct Tile {
    int64_t at, rows, channel, channels, inner;
    int64_t elements() const { return rows * channels * inner; }
  };
  // body(tile) for disjoint tiles that make up the tensor, on many threads.
  template <typename Body>
  void ForTiles(int threads, const Body& body) const;

  // out = f.At(c)(x, y); `y` as in Sum.
  template <typename F>
  void Map(DType dtype, const void* x, const void* y, void* out, int threads,
           const F& f) const;

 private:
  // A y for Reduce: what lies in memory, or x.
  struct Loaded {
    DType dtype;
    const void* y;
    const float* operator()(int64_t at, int64_t n, float* buffer,
                            const float* x) const {
      return y == nullptr ? x : LoadBlock(dtype, y, at, n, buffer);
    }
  };

  // Partial sums of each chunk: `partial` is [2][chunks][channels]. Without a
  // shift each chunk has its own, which comes third, and the sums become means
  // less that shift and sums of squared deviations: a mean far from 0 is kept
  // in more than f32.
  template <typename F, typename Y>
  void ReduceChunk(DType dtype, absl::Span<const Summed> summed, const Y& y,
                   int64_t chunk, int64_t channel) const;
  void CombineMoments(const float* partial, float* mean, float* variance) const;
  int64_t ChunkRows(int64_t chunk) const {
    return std::min(rows_per_chunk_, rows_ - chunk * rows_per_chunk_);
  }
  int64_t ChannelBlocks() const {
    return (channels_ + tile_channels_ - 1) / tile_channels_;
  }

  int64_t rows_ = 0, channels_ = 0, inner_ = 1;
  int64_t tile_rows_ = 1, tile_channels_ = 1, tile_inner_ = 1;
  int64_t rows_per_chunk_ = 1, chunks_ = 0;
};

// For Channels::Sum: about a shift.
struct Deviations {
  static float First(float x, float, float shift) { return x - shift; }
  static float Second(float x, float, float shift) {
    return (x - shift) * (x - shift);
  }
};

// ---- Inline parts.

namespace channels_internal {

// A tile [rows][channels][inner] is added to sums per channel.
template <typename F>
void AddTile(const float* x, const float* y, const float* shift, int64_t rows,
             int64_t channels, int64_t inner, float* first, float* second) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) {
      const float* xr = x + r * channels * inner;
      const float* yr = y + r * channels * inner;
      if (inner == 1) {
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) {
          first[c] += F::First(xr[c], yr[c], shift[c]);
          second[c] += F::Second(xr[c], yr[c], shift[c]);
        }
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        const float* xc = xr + c * inner;
        const float* yc = yr + c * inner;
        const float s = shift[c];
        const TwoSums sums = SumsOf(
            inner, [=](int64_t i) { return F::First(xc[i], yc[i], s); },
            [=](int64_t i) { return F::Second(xc[i], yc[i], s); });
        first[c] += sums.first;
        second[c] += sums.second;
      }
    }
  });
}

template <typename F>
void MapTile(const float* x, const float* y, float* out, int64_t rows,
             int64_t channel, int64_t channels, int64_t inner, const F& f) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * channels * inner;
      if (inner == 1) {
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) {
          out[at + c] = f.At(channel + c)(x[at + c], y[at + c]);
        }
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        const auto g = f.At(channel + c);
        const int64_t begin = at + c * inner;
#pragma GCC ivdep
        for (int64_t i = 0; i < inner; ++i) {
          out[begin + i] = g(x[begin + i], y[begin + i]);
        }
      }
    }
  });
}

// Rows of one channel in 16 bits, in registers where they are whole vectors;
// how much was done.
template <typename F>
int64_t MapLowRow(DType dtype, const void* x, const void* y, void* out,
                  int64_t begin, int64_t end, const F& f) {
  if (y != nullptr) return MapLow(dtype, f, begin, end, out, x, y);
  return MapLow(
      dtype, [f](float v) { return f(v, v); }, begin, end, out, x);
}

// A shift for each channel: the mean of its part of a tile's first row.
void FirstRow(const float* x, int64_t channels, int64_t inner, float* shift);

// Sums about a shift become the mean less that shift and the sum of squared
// deviations, in place.
void ToMoments(int64_t channels, int64_t count, float* first, float* second);

}  // namespace channels_internal

template <typename F, typename Y>
void Channels::ReduceChunk(DType dtype, absl::Span<const Summed> summed,
                           const Y& y, int64_t chunk, int64_t channel) const {
  alignas(64) float x_buffer[kConvertBlock], y_buffer[kConvertBlock];
  const int64_t n = std::min(tile_channels_, channels_ - channel);
  const int64_t first_row = chunk * rows_per_chunk_;
  const int64_t end_row = first_row + ChunkRows(chunk);
  const int64_t plane = chunks_ * channels_;
  for (const Summed& of : summed) {
    float* const first = of.partial + chunk * channels_ + channel;
    std::fill_n(first, n, 0.0f);
    std::fill_n(first + plane, n, 0.0f);
  }
  for (int64_t row = first_row; row < end_row; row += tile_rows_) {
    const int64_t rows = std::min(tile_rows_, end_row - row);
    for (int64_t i = 0; i < inner_; i += tile_inner_) {
      const int64_t inner = std::min(tile_inner_, inner_ - i);
      const int64_t at = (row * channels_ + channel) * inner_ + i;
      const int64_t elements = rows * n * inner;
      const float* ys = nullptr;
      for (const Summed& of : summed) {
        float* const first = of.partial + chunk * channels_ + channel;
        float* const own_shift = first + 2 * plane;
        const float* xs = LoadBlock(dtype, of.x, at, elements, x_buffer);
        if (ys == nullptr) ys = y(at, elements, y_buffer, xs);
        if (of.shift == nullptr && row == first_row && i == 0) {
          channels_internal::FirstRow(xs, n, inner, own_shift);
        }
        channels_internal::AddTile<F>(
            xs, ys, of.shift == nullptr ? own_shift : of.shift + channel, rows,
            n, inner, first, first + plane);
      }
    }
  }
  for (const Summed& of : summed) {
    if (of.shift != nullptr) continue;
    float* const first = of.partial + chunk * channels_ + channel;
    channels_internal::ToMoments(n, (end_row - first_row) * inner_, first,
                                 first + plane);
  }
}

template <typename F, typename Y>
void Channels::Reduce(DType dtype, absl::Span<const Summed> summed, const Y& y,
                      int threads) const {
  const int64_t blocks = ChannelBlocks();
  const int64_t task_elements = rows_per_chunk_ * tile_channels_ * inner_;
  const int64_t grain =
      std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, task_elements));
  ParallelFor(threads, chunks_ * blocks, grain,
              [&](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  ReduceChunk<F>(dtype, summed, y, task / blocks,
                                 task % blocks * tile_channels_);
                }
              });
}

template <typename Body>
void Channels::ForTiles(int threads, const Body& body) const {
  if (count() == 0) return;
  const int64_t blocks = ChannelBlocks();
  const int64_t inner_blocks = (inner_ + tile_inner_ - 1) / tile_inner_;
  const int64_t row_blocks = (rows_ + tile_rows_ - 1) / tile_rows_;
  const int64_t grain = std::max<int64_t>(
      1, kMapGrain / (tile_rows_ * tile_channels_ * tile_inner_));
  ParallelFor(threads, row_blocks * blocks * inner_blocks, grain,
              [&](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  const int64_t i = task % inner_blocks * tile_inner_;
                  const int64_t block = task / inner_blocks;
                  const int64_t channel = block % blocks * tile_channels_;
                  const int64_t row = block / blocks * tile_rows_;
                  body(Tile{(row * channels_ + channel) * inner_ + i,
                            std::min(tile_rows_, rows_ - row), channel,
                            std::min(tile_channels_, channels_ - channel),
                            std::min(tile_inner_, inner_ - i)});
                }
              });
}

template <typename F>
void Channels::Map(DType dtype, const void* x, const void* y, void* out,
                   int threads, const F& f) const {
  ForTiles(threads, [&](Tile tile) {
    if (tile.rows * tile.channels == 1 && IsLow(dtype)) {
      const int64_t done = channels_internal::MapLowRow(
          dtype, x, y, out, tile.at, tile.at + tile.inner, f.At(tile.channel));
      tile.inner -= done - tile.at;
      tile.at = done;
    }
    alignas(64) float x_buffer[kConvertBlock], y_buffer[kConvertBlock];
    alignas(64) float out_buffer[kConvertBlock];
    const int64_t n = tile.elements();
    const float* xs = LoadBlock(dtype, x, tile.at, n, x_buffer);
    const float* ys =
        y == nullptr ? xs : LoadBlock(dtype, y, tile.at, n, y_buffer);
    float* to = OutputBlock(dtype, out, tile.at, out_buffer);
    channels_internal::MapTile(xs, ys, to, tile.rows, tile.channel,
                               tile.channels, tile.inner, f);
    StoreBlock(dtype, to, out, tile.at, n);
  });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CHANNELS_H_
