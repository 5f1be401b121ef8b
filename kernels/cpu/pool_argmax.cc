// Maximum pooling that also says where the maxima lie, and its gradient, of
// images of one channel side by side.
//
// Of equal maxima the place is the first one, in row-major order, but the value
// that of pool.cc, which goes through a window column by column: zeros of both
// signs are equal.

#include <limits>
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_rows.h"

namespace halftone {
namespace kernels {
namespace {

using PlaceVector =
    int32_t __attribute__((vector_size(4 * kVector), aligned(4), may_alias));

ABSL_ATTRIBUTE_ALWAYS_INLINE inline PlaceVector& At(int32_t* places) {
  return *reinterpret_cast<PlaceVector*>(places);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const PlaceVector& At(
    const int32_t* places) {
  return *reinterpret_cast<const PlaceVector*>(places);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const Vector& At(const float* x) {
  return VectorAt(x);
}

// x[0], x[stride], x[2 * stride] ...; of stride 2 one more is read.
template <typename V, typename T, typename Stride>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Strided(const T* x, Stride stride,
                                                 V* v) {
  if constexpr (std::is_same_v<Stride, One>) {
    *v = At(x);
  } else if constexpr (std::is_same_v<Stride, Two>) {
    const V a = At(x), b = At(x + kVector);
    *v = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  } else {
    T some[kVector];
    for (int k = 0; k < kVector; ++k) some[k] = x[k * stride];
    *v = At(some);
  }
}

// ---- The rows of a window first, which lie side by side in memory, then the
// columns of their result, a vector of windows at a time.

// Floats of a row that are merged at once: with their places they stay in the
// first-level cache.
constexpr int64_t kChunk = 2 * kConvertBlock;
// The place of padding, which is no one's maximum: above all others.
constexpr int32_t kPadding = 1 << 20;

// Windows [first, first + windows) of a line: the columns of the image and its
// padding that they hold, and of these those inside the image.
struct Chunk {
  int64_t first, windows;
  int64_t begin, columns;
  Range inside;
};

// Rows of the image inside a line's windows, from a chunk's first column
// inside the image on, and the place of each one's first column in a window.
struct Rows {
  const float* x[kNoArgmax];
  int32_t place[kNoArgmax];
  int count = 0;
};

class RowsArgmax {
 public:
  RowsArgmax(const PoolShape& shape, DType dtype)
      : shape_(shape), dtype_(dtype) {
    const PoolDim& w = shape_.w;
    windows_ = std::max<int64_t>(1, std::min(w.out, kChunk / w.stride));
    stride_ = windows_ == 1 ? 1 : w.stride;
    columns_ = (windows_ - 1) * stride_ + w.kernel;
    padded_ = columns_ + kVector * stride_;  // the last vector reads more
    for (int64_t o = 0; o < w.out; ++o) holes_ |= w.Window(o).size() <= 0;
  }

  static bool Supports(const PoolShape& shape) { return shape.channels == 1; }

  int64_t ScratchFloats() const {
    const int64_t rows = shape_.d.kernel * shape_.h.kernel;
    return 2 * padded_ + 2 * (windows_ + kVector) +
           (dtype_ == DType::kF32 ? 0 : rows * columns_);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t lines = shape_.planes * shape_.d.out * shape_.h.out;
    ForEachWithScratch(stream.threads(), lines,
                       shape_.d.kernel * shape_.h.kernel * shape_.w.in,
                       buffers.workspace, ScratchFloats(),
                       [&](int64_t line, float* scratch) {
                         for (int64_t o = 0; o < shape_.w.out; o += windows_) {
                           RunChunk(buffers, line, o, Carve(scratch));
                         }
                       });
  }

 private:
  // Of rows that were merged; of windows; of the image.
  struct Scratch {
    float* most;
    int32_t* places;
    float* out;
    int32_t* argmax;
    float* converted;
  };
  Scratch Carve(float* floats) const {
    Scratch scratch;
    scratch.most = floats;
    scratch.places = reinterpret_cast<int32_t*>(floats + padded_);
    scratch.out = floats + 2 * padded_;
    scratch.argmax =
        reinterpret_cast<int32_t*>(scratch.out + windows_ + kVector);
    scratch.converted = scratch.out + 2 * (windows_ + kVector);
    return scratch;
  }

  void RunChunk(const Buffers& buffers, int64_t line, int64_t first,
                const Scratch& scratch) const {
    const PoolDim& w = shape_.w;
    Chunk chunk;
    chunk.first = first;
    chunk.windows = std::min(windows_, w.out - first);
    chunk.begin = first * w.stride - w.before;
    chunk.columns = (chunk.windows - 1) * w.stride + w.kernel;
    chunk.inside = {std::max<int64_t>(0, chunk.begin),
                    std::min(w.in, chunk.begin + chunk.columns)};
    const int64_t at = line * w.out + first, n = chunk.windows;
    auto* argmax = static_cast<uint8_t*>(buffers.outputs[1]) + at;
    const Rows rows = RowsOf(buffers.inputs[0], line, chunk, scratch.converted);
    if (rows.count == 0) {
      std::fill_n(scratch.out, n, shape_.of_nothing);
      std::fill_n(argmax, n, kNoArgmax);
    } else {
      ForIsa([&, argmax] { RunRows(rows, chunk, scratch, argmax); });
    }
    char* out = static_cast<char*>(buffers.outputs[0]);
    FromFloat(dtype_, scratch.out, out + at * SizeOf(dtype_), n);
  }

  Rows RowsOf(const void* x, int64_t line, const Chunk& chunk,
              float* converted) const {
    const PoolDim &d = shape_.d, &h = shape_.h;
    const int64_t oh = line % h.out, od = line / h.out % d.out;
    const int64_t plane = line / h.out / d.out;
    const Range slices = d.Window(od), window = h.Window(oh);
    const int64_t n = chunk.inside.size();
    Rows rows;
    for (int64_t z = slices.begin; n > 0 && z < slices.end; ++z) {
      const int64_t slice = z - od * d.stride + d.before;
      for (int64_t y = window.begin; y < window.end; ++y) {
        const int64_t row = slice * h.kernel + y - oh * h.stride + h.before;
        const int64_t at = ((plane * d.in + z) * h.in + y) * shape_.w.in;
        rows.x[rows.count] = LoadBlock(dtype_, x, at + chunk.inside.begin, n,
                                       converted + rows.count * n);
        rows.place[rows.count++] = static_cast<int32_t>(row * shape_.w.kernel);
      }
    }
    return rows;
  }

  // ---- For bodies of ForIsa.

  void RunRows(const Rows& rows, const Chunk& chunk, const Scratch& scratch,
               uint8_t* argmax) const {
    const int64_t before = chunk.inside.begin - chunk.begin;
    const int64_t n = chunk.inside.size();
    Pad(scratch, 0, before);
    Pad(scratch, before + n, padded_);
    MergeRows(rows, n, scratch.most + before, scratch.places + before);
    const int nans = WithStride(stride_, [&](auto stride) {
      return MergeColumns(scratch, chunk.windows, stride);
    });
    if (nans != 0) FindNans(rows, chunk, scratch.out, scratch.argmax);
    for (int64_t i = 0; i < chunk.windows; ++i) {
      const int32_t place = scratch.argmax[i];
      if (holes_ && place >= kPadding) scratch.out[i] = shape_.of_nothing;
      argmax[i] = static_cast<uint8_t>(std::min(place, int32_t{kNoArgmax}));
    }
  }

  static void Pad(const Scratch& scratch, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      scratch.most[i] = -std::numeric_limits<float>::infinity();
      scratch.places[i] = kPadding;
    }
  }

  // Later rows have later places.
  static void MergeRows(const Rows& rows, int64_t n, float* most,
                        int32_t* places) {
    for (int64_t i = 0; n >= kVector && i < n; i += kVector) {
      // Some once more.
      MergeRowVector(rows, std::min(i, n - kVector), most, places);
    }
    for (int64_t i = 0; n < kVector && i < n; ++i) {
      most[i] = rows.x[0][i];
      places[i] = rows.place[0];
      for (int r = 1; r < rows.count; ++r) {
        if (rows.x[r][i] > most[i]) places[i] = rows.place[r];
        most[i] = Larger()(most[i], rows.x[r][i]);
      }
    }
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void MergeRowVector(const Rows& rows,
                                                          int64_t i,
                                                          float* most,
                                                          int32_t* places) {
    Vector larger = VectorAt(rows.x[0] + i);
    VectorMask place = rows.place[0] - VectorMask{};
    for (int r = 1; r < rows.count; ++r) {
      const Vector x = VectorAt(rows.x[r] + i);
      const VectorMask take = x > larger;
      place = take ? rows.place[r] - VectorMask{} : place;
      larger = take ? x : larger;
      larger = x != x ? x : larger;  // as Larger
    }
    VectorAt(most + i) = larger;
    At(places + i) = place;
  }

  // Whether there is a NaN among the results, of which places are not found.
  template <typename Stride>
  int MergeColumns(const Scratch& scratch, int64_t windows,
                   Stride stride) const {
    VectorMask nans = {};
    for (int64_t o = 0; o < windows; o += kVector) {
      const float* most = scratch.most + o * stride;
      const int32_t* places = scratch.places + o * stride;
      Vector larger, x;
      VectorMask argmax, place;
      Strided(most, stride, &larger);
      Strided(places, stride, &argmax);
      for (int32_t j = 1; j < shape_.w.kernel; ++j) {
        Strided(most + j, stride, &x);
        Strided(places + j, stride, &place);
        place += j;
        const VectorMask take = x > larger;
        const VectorMask before = (x == larger) & (place < argmax);
        argmax = (take | before) ? place : argmax;
        larger = take ? x : larger;
        larger = x != x ? x : larger;
      }
      if (o + kVector <= windows) nans |= larger != larger;
      for (int64_t i = o; o + kVector > windows && i < windows; ++i) {
        nans[0] |= larger[i - o] != larger[i - o];
      }
      VectorAt(scratch.out + o) = larger;
      At(scratch.argmax + o) = argmax;
    }
    int any = 0;
    for (int k = 0; k < kVector; ++k) any |= nans[k];
    return any;
  }

  // A NaN is the maximum wherever there is one: the first.
  void FindNans(const Rows& rows, const Chunk& chunk, const float* out,
                int32_t* argmax) const {
    for (int64_t i = 0; i < chunk.windows; ++i) {
      if (out[i] == out[i]) continue;
      const int64_t o = chunk.first + i;
      const int64_t begin = o * shape_.w.stride - shape_.w.before;
      const Range columns = shape_.w.Window(o);
      for (int r = rows.count - 1; r >= 0; --r) {
        for (int64_t c = columns.end - 1; c >= columns.begin; --c) {
          const float x = rows.x[r][c - chunk.inside.begin];
          if (x == x) continue;
          argmax[i] = rows.place[r] + static_cast<int32_t>(c - begin);
        }
      }
    }
  }

  PoolShape shape_;
  DType dtype_;
  int64_t windows_, columns_;  // of a chunk, at most
  int64_t stride_, padded_;    // of a chunk's windows; floats of a row
  bool holes_ = false;         // some windows hold no column
};

// ---- The gradient.
class RowsGrad {
 public:
  RowsGrad(const PoolShape& shape, DType dtype)
      : shape_(shape), dtype_(dtype), gather_(shape) {}

  static bool Supports(const PoolShape& shape) {
    return RowsGather::Supports(shape);
  }

  // And places, and what else is converted.
  int64_t ScratchFloats() const {
    return gather_.ScratchFloats() + Windows() +
           (dtype_ == DType::kF32 ? 0 : Windows() + Elements());
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, Elements()));
    ForTasksWithScratch(
        stream.threads(), shape_.planes, grain, buffers.workspace,
        ScratchFloats(), [&](int64_t begin, int64_t end, float* scratch) {
          const RowsGather::Lines lines = gather_.Carve(scratch);
          for (int64_t p = begin; p < end; ++p) {
            RunPlane(buffers, p, lines, scratch + gather_.ScratchFloats());
          }
        });
  }

 private:
  int64_t Windows() const { return shape_.d.out * shape_.h.out * shape_.w.out; }
  int64_t Elements() const { return shape_.d.in * shape_.h.in * shape_.w.in; }

  void RunPlane(const Buffers& buffers, int64_t p,
                const RowsGather::Lines& lines, float* converted) const {
    enum { kOutGrad, kArgmax };
    const int64_t windows = Windows();
    auto* wide = reinterpret_cast<int32_t*>(converted);
    const float* grad = LoadBlock(dtype_, buffers.inputs[kOutGrad], p * windows,
                                  windows, converted + windows);
    const auto* argmax =
        static_cast<const uint8_t*>(buffers.inputs[kArgmax]) + p * windows;
    float* x_grad = OutputBlock(dtype_, buffers.outputs[0], p * Elements(),
                                converted + 2 * windows);
    ForIsa([=](auto isa) {
      constexpr Isa kIsa = decltype(isa)::value;
      auto* places = RowsGather::Places<kIsa>(lines);
      const auto copy = [=](const auto* from) {
        const int64_t n = shape_.w.out;
        for (int64_t l = 0; l < shape_.d.out * shape_.h.out; ++l) {
          gather_.CopyLine(grad + l * n, lines.grad + gather_.At(l));
          gather_.CopyLine(from + l * n, places + gather_.At(l));
        }
      };
      if constexpr (sizeof(*places) == sizeof(*argmax)) {
        copy(argmax);
      } else {
        // All at once: of a short line compilers widen bytes one by one.
#pragma GCC ivdep
        for (int64_t i = 0; i < windows; ++i) wide[i] = argmax[i];
        copy(wide);
      }
      gather_.template Plane<kIsa>(lines, x_grad);
    });
    StoreBlock(dtype_, x_grad, buffers.outputs[0], p * Elements(), Elements());
  }

  PoolShape shape_;
  DType dtype_;
  RowsGather gather_;
};

}  // namespace

void RegisterCpuPoolArgmax(KernelRegistry& registry) {
  const Candidate argmax =
      WithArgmax(PoolCandidate<RowsArgmax>("rows_argmax"), true);
  for (const char* op : kPools) AddForSchema(registry, op, argmax);
  const Candidate gather = PoolCandidate<RowsGrad>("rows");
  for (const char* op : kMaxPoolGrads) AddForSchema(registry, op, gather);
}

}  // namespace kernels
}  // namespace halftone
