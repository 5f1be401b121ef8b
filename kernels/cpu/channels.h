// Loops over tensors of channels ([N, C, ...] in either layout): sums per
// channel in one fixed order, and element-wise work with numbers per channel.
// Where channels are innermost and whole vectors, all that is done with a
// vector of them is done in registers; elsewhere in blocks, step by step.
#ifndef HALFTONE_KERNELS_CPU_CHANNELS_H_
#define HALFTONE_KERNELS_CPU_CHANNELS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "kernels/bound_op.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lane_sums.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/streamed_output.h"
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
  int64_t workspace_floats() const { return 3 * plane(); }

  // What is summed about `shift` ([channels]; null: a shift of each chunk) into
  // `partial`, of workspace_floats.
  struct Summed {
    const void* x;
    const float* shift;
    float* partial;
  };

  // first[c], second[c] = the sums over channel c's elements of what
  // F::Terms(x, y, shift[c], &first, &second) makes, of numbers or of vectors
  // of them. `y` has x's dtype and layout, or is null.
  template <typename F>
  void Sum(DType dtype, const void* x, const void* y, const float* shift,
           float* first, float* second, float* workspace, int threads) const {
    const Summed summed[] = {{x, shift, workspace}};
    Reduce<F>(dtype, summed, Loaded{dtype, y}, threads);
    CombineSums(workspace, first, second, threads);
  }

  // The partial sums of several x of one dtype and layout with one y, of which
  // `y`(at, n, buffer, x) gives elements [at, at + n), in `buffer` or
  // elsewhere, or y.Lanes<T>(tile, room).At<LowVectors>(at, channel, x, to)
  // vectors of a tile; each is asked for once. `x`: those of the first of
  // `summed`, of which there are at most two. CombineSums makes results of
  // them. Y::kTakesBlocks: tiles are at most a block, and `room` has room for
  // one; else they are of more rows, with a part of the channels. Y::kInOrder:
  // a row comes after the other, as more streams than x and y, or what is
  // stored, go faster in order than sums do near.
  template <typename F, typename Y>
  void Reduce(DType dtype, absl::Span<const Summed> summed, const Y& y,
              int threads) const;
  // Either result may be null: nobody wants it.
  void CombineSums(const float* partial, float* first, float* second,
                   int threads) const;

  // The mean and the biased variance of each channel; 0 of nothing. Chunks
  // are summed about a mean of their first elements, so that little cancels.
  void Moments(DType dtype, const void* x, float* mean, float* variance,
               float* workspace, int threads) const;

  // Whole vectors of any instruction set.
  static constexpr int64_t kLaneChannels = LowVector<Isa::kAvx512>::kSize;

  // A part of the tensor that lies in one piece: [rows][channels][inner] from
  // element `at` and from `channel` on, at most a block of elements.
  struct Tile {
    int64_t at, rows, channel, channels, inner;
    int64_t elements() const { return rows * channels * inner; }
    // Whether it is one run of one channel's elements.
    bool IsRow() const { return rows * channels == 1; }
    // Whether it is rows of whole vectors of channels.
    bool IsLanes() const { return inner == 1 && channels % kLaneChannels == 0; }
  };
  // body(tile) for disjoint tiles that make up the tensor, on many threads.
  template <typename Body>
  void ForTiles(int threads, const Body& body) const;

  // out = f.At(c)(x, y); `y` as in Sum.
  template <typename F>
  void Map(DType dtype, const void* x, const void* y, void* out, int threads,
           const F& f) const {
    const StreamedOutput output(out, dtype, count() * channels_,
                                out == x || out == y);
    ForTiles(threads, [&](const Tile& tile) {
      output.WritePart(tile.at, tile.elements(),
                       [&](void* to) { MapTile(dtype, x, y, to, tile, f); });
    });
  }
  // The same of one tile, which is made at `to`.
  template <typename F>
  void MapTile(DType dtype, const void* x, const void* y, void* to, Tile tile,
               const F& f) const;
  // An output of this shape, for parts that are tiles.
  StreamedOutput Output(const Buffers& buffers, int output, DType dtype) const {
    return StreamedOutput::Of(buffers, output, dtype, count() * channels_);
  }

 private:
  // A y for Reduce: what lies in memory, or x.
  struct Loaded {
    static constexpr bool kTakesBlocks = false, kInOrder = false;
    DType dtype;
    const void* y;
    const float* operator()(int64_t at, int64_t n, float* buffer,
                            const float* x) const {
      return y == nullptr ? x : LoadBlock(dtype, y, at, n, buffer);
    }
    template <typename T>
    struct LoadedLanes {
      static constexpr bool kFetches = true;
      const T* y;
      template <typename Some>
      void At(int64_t at, int64_t, const typename Some::Lanes& x,
              typename Some::Lanes& to) const {
        y == nullptr ? Some::Copy(x, to) : Some::Load(y + at, to);
      }
      ABSL_ATTRIBUTE_ALWAYS_INLINE void FetchAt(int64_t at, int64_t n) const {
        if (y != nullptr) channels_internal::Fetch(y + at, n);
      }
      const T* Of(const T* x) const { return y == nullptr ? x : y; }
    };
    template <typename T>
    LoadedLanes<T> Lanes(const Tile&, T*) const {
      return {static_cast<const T*>(y)};
    }
  };

  // Partial sums of each chunk: `partial` is [2][chunks][channels]. Without a
  // shift each chunk has its own, which comes third, and the sums become means
  // less that shift and sums of squared deviations: a mean far from 0 is kept
  // in more than f32.
  template <typename F, typename Y>
  void ReduceChunk(DType dtype, absl::Span<const Summed> summed, const Y& y,
                   int64_t chunk, int64_t channel) const;
  // `next`: where the next tile begins, unless this one is the last.
  template <typename F, typename Y>
  void ReduceTile(DType dtype, absl::Span<const Summed> summed, const Y& y,
                  const Tile& tile, int64_t next, int64_t chunk) const;
  // Of a row in 16 bits.
  template <typename F>
  void ReduceLowRow(DType dtype, absl::Span<const Summed> summed,
                    const Loaded& y, const Tile& tile, int64_t chunk) const;
  template <typename F, typename T, typename Y>
  void ReduceLanes(absl::Span<const Summed> summed, const Y& y,
                   const Tile& tile, int64_t chunk) const;
  void CombineMoments(const float* partial, float* mean, float* variance,
                      int threads) const;
  // body(first channel, number) for some channels at a time, on many threads.
  template <typename Body>
  void ForChannels(int threads, const Body& body) const;
  // From one of a channel's partial sums to the next: not near a multiple of a
  // page, as caches take what lies pages apart for the same at first.
  int64_t plane() const {
    constexpr int64_t kPage = 1024;  // floats
    return (chunks_ * channels_ / kPage + 1) * kPage + kPage / 3 / 16 * 16;
  }
  int64_t ChunkRows(int64_t chunk) const {
    return std::min(rows_per_chunk_, rows_ - chunk * rows_per_chunk_);
  }
  int64_t ChannelBlocks() const {
    return (channels_ + tile_channels_ - 1) / tile_channels_;
  }

  // At least, of a tile of lanes, whose sums are read and written once for all.
  static constexpr int64_t kLaneRows = 8;

  int64_t rows_ = 0, channels_ = 0, inner_ = 1;
  int64_t tile_rows_ = 1, tile_channels_ = 1, tile_inner_ = 1;
  int64_t rows_per_chunk_ = 1, chunks_ = 0;
};

// For Channels::Sum: about a shift.
struct Deviations {
  template <typename V>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Terms(const V& x, const V&,
                                                 const V& shift, V* first,
                                                 V* second) {
    *first = x - shift;
    *second = *first * *first;
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
          float a, b;
          F::Terms(xr[c], yr[c], shift[c], &a, &b);
          first[c] += a;
          second[c] += b;
        }
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        const float* xc = xr + c * inner;
        const float* yc = yr + c * inner;
        const auto terms = [=, s = shift[c]](int64_t i) {
          TwoSums made;
          F::Terms(xc[i], yc[i], s, &made.first, &made.second);
          return made;
        };
        const TwoSums sums = SumsOf(
            inner, [=](int64_t i) { return terms(i).first; },
            [=](int64_t i) { return terms(i).second; });
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

// A row of one channel in 16 bits, converted in registers, is added to its sums
// in the order of AddTile; `y`: lanes for AddLanes.
template <typename F, typename T, typename Lanes>
void AddLowRow(const T* x, const Lanes& y, float shift, int64_t at, int64_t n,
               float* first, float* second) {
  alignas(64) float shifts[kLanes], firsts[kLanes] = {}, seconds[kLanes] = {};
  std::fill_n(shifts, kLanes, shift);
  const LaneSums<T> sums = {x + at, shifts, firsts, seconds};
  // As many channels as SumsOf has lanes.
  const LaneRows rows = {at, 0, kLanes, kLanes, 0, n / kLanes};
  const int rest = static_cast<int>(n % kLanes);
  ForIsaOfCopy([=, firsts = &firsts[0], seconds = &seconds[0]](auto isa) {
    constexpr Isa kIsa = decltype(isa)::value;
    using Low = LowVector<kIsa>;
    int64_t c = 0;
    AddLanes<F, kIsa, kLanes / Low::kSize, false>(sums, sums, y, rows, &c);
    if (rest == 0) return;
    T padded[kLanes] = {}, padded_y[kLanes] = {};
    const int64_t end = at + n;
    std::copy_n(x + end - rest, rest, padded);
    std::copy_n(y.Of(x) + end - rest, rest, padded_y);
    alignas(64) float xs[kLanes], ys[kLanes];
#pragma GCC unroll 4
    for (int k = 0; k < kLanes; k += Low::kSize) {
      Low::Load(padded + k, xs + k);
      Low::Load(padded_y + k, ys + k);
    }
    for (int j = 0; j < kLanes; ++j) {
      float a, b;
      F::Terms(xs[j], ys[j], shift, &a, &b);
      firsts[j] += j < rest ? a : 0.0f;
      seconds[j] += j < rest ? b : 0.0f;
    }
  });
  *first += SumOfLanes(reinterpret_cast<const Vector*>(firsts));
  *second += SumOfLanes(reinterpret_cast<const Vector*>(seconds));
}

// body(LowVectors, at, c) for the vectors of rows of channels, c a row's
// channel and `at` its place; of T, two together where that is worth it. For
// bodies of ForIsa.
template <Isa kIsa, typename T, typename Body>
inline void ForVectors(int64_t rows, int64_t channels, const Body body) {
  using One = LowVectors<kIsa, 1>;
  using More = LowVectors<kIsa, kMostTogether<kIsa, T>>;
  const int64_t more = channels / More::kElements * More::kElements;
  int64_t at = 0;
  if constexpr (More::kVectors == 2) {
    const int64_t end = channels == One::kElements ? rows * channels : 0;
    for (; at + More::kElements <= end; at += More::kElements) {
      body(LowPixels<kIsa>(), at, 0);
    }
  }
  for (; at < rows * channels; at += channels) {
    int64_t c = 0;
    for (; c < more; c += More::kElements) body(More(), at + c, c);
    for (; c < channels; c += One::kElements) body(One(), at + c, c);
  }
}

// The same of whole vectors of channels, in registers.
template <typename T, typename F>
void MapLanes(const T* x, const T* y, T* out, int64_t rows, int64_t channel,
              int64_t channels, const F& f) {
  ForIsaOfCopy([=](auto isa) {
    constexpr Isa kIsa = decltype(isa)::value;
    ForVectors<kIsa, T>(rows, channels, [=](auto some, int64_t at, int64_t c) {
      using Some = decltype(some);
      typename Some::Lanes a, b, made;
      Some::Load(x + at, a);
      if (y != nullptr) Some::Load(y + at, b);
#pragma GCC unroll 2
      for (int v = 0; v < Some::kVectors; ++v) {
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
        for (int k = 0; k < Some::kSize; ++k) {
          const int64_t at_channel = channel + c + Some::Channel(v) + k;
          made[v][k] = f.At(at_channel)(a[v][k], b[v][k]);
        }
      }
      Some::Store(made, out + at);
    });
  });
}

// A row of one channel in 16 bits, in registers where it is whole vectors; how
// much was done.
template <typename F>
int64_t MapLowRow(DType dtype, const void* x, const void* y, int64_t at,
                  int64_t n, void* to, const F& f) {
  if (y != nullptr) return MapLow(dtype, f, at, n, to, x, y);
  return MapLow(
      dtype, [f](float v) { return f(v, v); }, at, n, to, x);
}

// A shift for each channel, `inner` elements from element `at` on: the mean of
// the first of them.
void FirstMeans(DType dtype, const void* x, int64_t at, int64_t channels,
                int64_t inner, float* shift);

// Sums about a shift become the mean less that shift and the sum of squared
// deviations, in place.
void ToMoments(int64_t channels, int64_t count, float* first, float* second);

}  // namespace channels_internal

template <typename F, typename Y>
void Channels::ReduceChunk(DType dtype, absl::Span<const Summed> summed,
                           const Y& y, int64_t chunk, int64_t channel) const {
  const int64_t n = std::min(tile_channels_, channels_ - channel);
  const int64_t first_row = chunk * rows_per_chunk_;
  const int64_t end_row = first_row + ChunkRows(chunk);
  const int64_t plane = this->plane();
  for (const Summed& of : summed) {
    float* const first = of.partial + chunk * channels_ + channel;
    std::fill_n(first, n, 0.0f);
    std::fill_n(first + plane, n, 0.0f);
    if (of.shift != nullptr) continue;
    const int64_t at = (first_row * channels_ + channel) * inner_;
    channels_internal::FirstMeans(dtype, of.x, at, n, inner_,
                                  first + 2 * plane);
  }
  const bool is_lanes = inner_ == 1 && n % kLaneChannels == 0;
  const int64_t rows = is_lanes && !Y::kTakesBlocks
                           ? std::max(tile_rows_, kLaneRows)
                           : tile_rows_;
  for (int64_t row = first_row; row < end_row; row += rows) {
    for (int64_t i = 0; i < inner_; i += tile_inner_) {
      const Tile tile = {(row * channels_ + channel) * inner_ + i,
                         std::min(rows, end_row - row), channel, n,
                         std::min(tile_inner_, inner_ - i)};
      if (tile.IsLanes()) {
        DispatchType(FloatTypes(), dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          ReduceLanes<F, T>(summed, y, tile, chunk);
        });
      } else {
        if constexpr (std::is_same_v<Y, Loaded>) {
          if (tile.IsRow() && IsLow(dtype) && HostIsa() != Isa::kBaseline) {
            ReduceLowRow<F>(dtype, summed, y, tile, chunk);
            continue;
          }
        }
        const int64_t next = i + tile_inner_ < inner_
                                 ? tile.at + tile_inner_
                                 : tile.at - i + tile.rows * channels_ * inner_;
        ReduceTile<F>(dtype, summed, y, tile, next, chunk);
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
void Channels::ReduceTile(DType dtype, absl::Span<const Summed> summed,
                          const Y& y, const Tile& tile, int64_t next,
                          int64_t chunk) const {
  const int64_t plane = this->plane();
  alignas(64) float x_buffer[kConvertBlock], y_buffer[kConvertBlock];
  const float* ys = nullptr;
  // Who reads floats where they are waits at each piece of memory: the next
  // one comes near first. (In a lambda, which does nothing else, GCC drops it.)
  if (dtype == DType::kF32) {
    for (const Summed& of : summed) {
      channels_internal::Fetch(static_cast<const float*>(of.x) + next,
                               tile.elements());
    }
    if constexpr (std::is_same_v<Y, Loaded>) {
      if (y.y != nullptr) {
        channels_internal::Fetch(static_cast<const float*>(y.y) + next,
                                 tile.elements());
      }
    }
  }
  for (const Summed& of : summed) {
    float* const first = of.partial + chunk * channels_ + tile.channel;
    const float* xs =
        LoadBlock(dtype, of.x, tile.at, tile.elements(), x_buffer);
    if (ys == nullptr) ys = y(tile.at, tile.elements(), y_buffer, xs);
    channels_internal::AddTile<F>(
        xs, ys,
        of.shift == nullptr ? first + 2 * plane : of.shift + tile.channel,
        tile.rows, tile.channels, tile.inner, first, first + plane);
  }
}

template <typename F>
void Channels::ReduceLowRow(DType dtype, absl::Span<const Summed> summed,
                            const Loaded& y, const Tile& tile,
                            int64_t chunk) const {
  const int64_t plane = this->plane();
  for (const Summed& of : summed) {
    float* const first = of.partial + chunk * channels_ + tile.channel;
    const float shift =
        of.shift == nullptr ? first[2 * plane] : of.shift[tile.channel];
    const auto add = [&](auto zero) {
      using T = decltype(zero);
      channels_internal::AddLowRow<F>(static_cast<const T*>(of.x),
                                      y.Lanes<T>(tile, nullptr), shift, tile.at,
                                      tile.inner, first, first + plane);
    };
    dtype == DType::kF16 ? add(half()) : add(bfloat16());
  }
}

template <typename F, typename T, typename Y>
void Channels::ReduceLanes(absl::Span<const Summed> summed, const Y& y,
                           const Tile& tile, int64_t chunk) const {
  using Sums = channels_internal::LaneSums<T>;
  const auto sums_of = [&](const Summed& of) {
    float* const first = of.partial + chunk * channels_ + tile.channel;
    float* const second = first + plane();
    return Sums{
        static_cast<const T*>(of.x) + tile.at,
        of.shift == nullptr ? second + plane() : of.shift + tile.channel, first,
        second};
  };
  const Sums sums = sums_of(summed.front()), more = sums_of(summed.back());
  const bool is_two = summed.size() > 1;
  const channels_internal::LaneRows all = {
      tile.at, tile.channel, tile.channels, channels_, 0, tile.rows};
  alignas(64) T room[kConvertBlock];
  ForIsaOfCopy([=, lanes = y.template Lanes<T>(tile, room)](auto isa) {
    constexpr Isa kIsa = decltype(isa)::value;
    const auto add = [&](const channels_internal::LaneRows& rows) {
      using channels_internal::AddLanes;
      int64_t c = 0;
      if (is_two) {
        AddLanes<F, kIsa, 2, true>(sums, more, lanes, rows, &c);
        AddLanes<F, kIsa, 1, true>(sums, more, lanes, rows, &c);
      } else {
        AddLanes<F, kIsa, 4, false>(sums, more, lanes, rows, &c);
        AddLanes<F, kIsa, 1, false>(sums, more, lanes, rows, &c);
      }
    };
    // Where the sums are those of all channels, all go in order anyway.
    const int64_t together = (is_two ? 2 : 4) * LowVector<kIsa>::kSize;
    if (!Y::kInOrder || tile.channels <= together) return add(all);
    for (auto row = all; row.first < all.end; ++row.first) {
      row.end = row.first + 1;
      add(row);
    }
  });
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
                FinishStores();
              });
}

template <typename F>
void Channels::MapTile(DType dtype, const void* x, const void* y, void* to,
                       Tile tile, const F& f) const {
  if (tile.IsLanes()) {
    return DispatchType(FloatTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const ys = static_cast<const T*>(y);
      channels_internal::MapLanes(
          static_cast<const T*>(x) + tile.at, y == nullptr ? ys : ys + tile.at,
          static_cast<T*>(to), tile.rows, tile.channel, tile.channels, f);
    });
  }
  int64_t done = 0;
  if (tile.IsRow() && IsLow(dtype)) {
    done = channels_internal::MapLowRow(dtype, x, y, tile.at, tile.inner, to,
                                        f.At(tile.channel));
    tile.inner -= done;
    tile.at += done;
  }
  alignas(64) float x_buffer[kConvertBlock], y_buffer[kConvertBlock];
  alignas(64) float out_buffer[kConvertBlock];
  const int64_t n = tile.elements();
  const float* xs = LoadBlock(dtype, x, tile.at, n, x_buffer);
  const float* ys =
      y == nullptr ? xs : LoadBlock(dtype, y, tile.at, n, y_buffer);
  float* made = OutputBlock(dtype, to, done, out_buffer);
  channels_internal::MapTile(xs, ys, made, tile.rows, tile.channel,
                             tile.channels, tile.inner, f);
  StoreBlock(dtype, made, to, done, n);
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CHANNELS_H_
