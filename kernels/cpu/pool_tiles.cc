// Maximum pooling and its gradient where the windows tile the image: no
// padding, no overlap, nothing left over, one channel side by side.
//
// A block of window rows is taken at once. Where they are short its image rows
// are split by their place in the window, so that all loops run over a block
// and not over an image row. The gradient takes elements as they are stored.
// The bits are those of the other candidates.
#include <functional>
#include <type_traits>

#include "absl/base/attributes.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"

namespace halftone {
namespace kernels {
namespace {

// Windows of [kernel_slices][kernel_rows][kernel_columns], `windows` of them in
// a row.
struct Tiling {
  int64_t kernel_slices, kernel_rows, kernel_columns, windows;
  int64_t slice_rows;   // window rows of a slice of windows
  int64_t window_rows;  // of all images

  explicit Tiling(const PoolShape& shape)
      : kernel_slices(shape.d.kernel),
        kernel_rows(shape.h.kernel),
        kernel_columns(shape.w.kernel),
        windows(shape.w.out),
        slice_rows(shape.h.out),
        window_rows(shape.planes * shape.d.out * shape.h.out) {}

  static bool Covers(const PoolDim& dim) {
    return !dim.adaptive && dim.kernel == dim.stride && dim.before == 0 &&
           dim.in == dim.out * dim.kernel;
  }
  static bool Covers(const PoolShape& shape) {
    return shape.max && shape.channels == 1 && Covers(shape.d) &&
           Covers(shape.h) && Covers(shape.w);
  }

  int64_t image_row() const { return windows * kernel_columns; }
  // Of a window row: in one slice of the image, and in all.
  int64_t slice_elements() const { return kernel_rows * image_row(); }
  int64_t elements() const { return kernel_slices * slice_elements(); }
  // Window rows of a block.
  int64_t block() const {
    return std::max<int64_t>(1,
                             kConvertBlock / std::max<int64_t>(1, elements()));
  }
  // Those from r on, before `end`, whose parts of a slice lie side by side.
  int64_t BlockAt(int64_t r, int64_t end) const {
    const int64_t rows = std::min(block(), end - r);
    return kernel_slices == 1 ? rows
                              : std::min(rows, slice_rows - r % slice_rows);
  }
  // Where in the image the k-th slice of window row r begins.
  int64_t Begin(int64_t r, int64_t k) const {
    return ((r / slice_rows * kernel_slices + k) * slice_rows +
            r % slice_rows) *
           slice_elements();
  }
};

// [rows][kernel_rows][width] to [kernel_rows][rows][width], or back: which of
// the two is const.
template <typename Image, typename Split>
void SplitRows(Image* image, Split* split, int64_t rows, int64_t kernel_rows,
               int64_t width) {
  ForIsa([=] {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < kernel_rows; ++i) {
        Image* a = image + (r * kernel_rows + i) * width;
        Split* b = split + (i * rows + r) * width;
        const int64_t bytes = width * int64_t{sizeof(Image)};
        if constexpr (std::is_const_v<Split>) {
          CopyShort(reinterpret_cast<const char*>(b),
                    reinterpret_cast<char*>(a), bytes);
        } else {
          CopyShort(reinterpret_cast<const char*>(a),
                    reinterpret_cast<char*>(b), bytes);
        }
      }
    }
  });
}

// ---- Gradients of windows of two columns: the bits of elements as they are
// stored, in whole vectors.

template <typename T, int kBytes>
using VectorOf
    __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias)) = T;

template <typename T>
struct Stored {
  using Bits = uint32_t;
  using Pair = uint64_t;  // of columns
  // 0 + x: -0 becomes 0.
  static Bits PlusZero(Bits x) {
    return half_internal::Bits(0.0f + half_internal::FromBits(x));
  }
  // What Same takes.
  static Bits Canonical(Bits x) { return x; }
  // All ones where x and `canonical` are equal as f32, or NaNs.
  template <int kBytes>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Same(
      const VectorOf<Bits, kBytes>& x, const VectorOf<Bits, kBytes>& canonical,
      VectorOf<Pair, kBytes>* same) {
    using Floats = VectorOf<float, kBytes>;
    const Floats a = (Floats)x, b = (Floats)canonical;
    *same = (VectorOf<Pair, kBytes>)((a == b) | ((a != a) & (b != b)));
  }
};
template <uint16_t kInfinity, uint16_t kQuiet>
struct StoredLow {
  using Bits = uint16_t;
  using Pair = uint32_t;
  static constexpr Bits kMagnitude = 0x7fff;  // is a NaN, too
  static Bits PlusZero(Bits x) {
    const Bits magnitude = x & kMagnitude;
    const Bits quiet = magnitude > kInfinity ? x | kQuiet : x;
    return magnitude == 0 ? magnitude : quiet;
  }
  static Bits Canonical(Bits x) {
    const Bits magnitude = x & kMagnitude;
    const Bits number = magnitude == 0 ? magnitude : x;
    return magnitude > kInfinity ? kMagnitude : number;
  }
  template <int kBytes>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Same(
      const VectorOf<Bits, kBytes>& x, const VectorOf<Bits, kBytes>& canonical,
      VectorOf<Pair, kBytes>* same) {
    using Signed = VectorOf<int16_t, kBytes>;
    const Signed bits = (Signed)x, magnitude = bits & kMagnitude;
    const Signed number = magnitude == 0 ? magnitude : bits;
    const Signed unique =
        magnitude > kInfinity ? kMagnitude - Signed{} : number;
    *same = (VectorOf<Pair, kBytes>)(unique == (Signed)canonical);
  }
};
template <>
struct Stored<half> : StoredLow<0x7c00, 0x200> {};
template <>
struct Stored<bfloat16> : StoredLow<0x7f80, 0x40> {};

// A vector of an image row. Beside each element stand its window's maximum, in
// `out`, and in `rest` its gradient, which becomes 0 when it has been taken.
template <typename T, int kBytes, typename Bits>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TakeVector(const Bits* x,
                                                    const Bits* out, Bits* rest,
                                                    Bits* x_grad) {
  using Pairs = VectorOf<typename Stored<T>::Pair, kBytes>;
  using Vector = VectorOf<Bits, kBytes>;
  constexpr int kShift = 8 * sizeof(Bits);
  Pairs same;
  Stored<T>::template Same<kBytes>(*reinterpret_cast<const Vector*>(x),
                                   *reinterpret_cast<const Vector*>(out),
                                   &same);
  Pairs* left = reinterpret_cast<Pairs*>(rest);
  const Pairs after = same << kShift;  // the second column's neighbour was it
  *reinterpret_cast<Pairs*>(x_grad) = same & ~after & *left;
  *left &= ~(same | after | same >> kShift);
}

// An image row of n elements.
template <typename T, typename Bits>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TakeMaxima(const Bits* x,
                                                    const Bits* out, Bits* rest,
                                                    Bits* x_grad, int64_t n) {
  constexpr int kPair = 2 * sizeof(Bits);
  int64_t i = 0;
  for (; i + 32 / kPair * 2 <= n; i += 32 / kPair * 2) {
    TakeVector<T, 32>(x + i, out + i, rest + i, x_grad + i);
  }
  for (; i + 16 / kPair * 2 <= n; i += 16 / kPair * 2) {
    TakeVector<T, 16>(x + i, out + i, rest + i, x_grad + i);
  }
  for (; i < n; i += 2) {
    TakeVector<T, kPair>(x + i, out + i, rest + i, x_grad + i);
  }
}

// to[i] = the larger of to[i] and from[i].
void MergeRow(float* to, const float* from, int64_t n) {
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = Larger()(to[i], from[i]);
  });
}

template <typename Columns>
void MergeColumns(const float* row, float* out, int64_t n, Columns columns) {
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t w = 0; w < n; ++w) {
      float largest = row[w * columns];
      for (int64_t j = 1; j < columns; ++j) {
        largest = Larger()(largest, row[w * columns + j]);
      }
      out[w] = largest;
    }
  });
}

// body(columns): known to the compiler for the usual windows.
template <typename Body>
void WithColumns(int64_t columns, const Body& body) {
  if (columns == 2) {
    body(std::integral_constant<int64_t, 2>());
  } else if (columns == 3) {
    body(std::integral_constant<int64_t, 3>());
  } else {
    body(columns);
  }
}

// Calls run(window row, rows, scratch) for blocks of window rows.
template <typename Run>
void ForTiles(const Tiling& tiling, int64_t scratch_floats,
              const Buffers& buffers, runtime::Stream& stream, const Run& run) {
  if (tiling.elements() == 0) return;
  const int64_t grain = std::max<int64_t>(1, kMapGrain / tiling.elements());
  ForTasksWithScratch(stream.threads(), tiling.window_rows, grain,
                      buffers.workspace, scratch_floats,
                      [&](int64_t begin, int64_t end, float* scratch) {
                        for (int64_t r = begin; r < end;) {
                          const int64_t rows = tiling.BlockAt(r, end);
                          run(r, rows, scratch);
                          r += rows;
                        }
                      });
}

// Window rows of the image from `first` on as [kernel_slices][kernel_rows]
// [rows][width]; `scratch` holds a slice of them.
void LoadSplit(const Tiling& tiling, DType dtype, const void* x, int64_t first,
               int64_t rows, float* scratch, float* split) {
  const int64_t slice = rows * tiling.slice_elements();
  for (int64_t k = 0; k < tiling.kernel_slices; ++k) {
    const float* from =
        LoadBlock(dtype, x, tiling.Begin(first, k), slice, scratch);
    SplitRows(from, split + k * slice, rows, tiling.kernel_rows,
              tiling.image_row());
  }
}

struct MaxTiles {
  Tiling tiling;
  DType dtype;

  int64_t ScratchFloats() const {
    return tiling.block() * (2 * tiling.elements() + tiling.windows);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForTiles(tiling, ScratchFloats(), buffers, stream,
             [&](int64_t first, int64_t rows, float* scratch) {
               const int64_t n = rows * tiling.elements();
               const int64_t windows = rows * tiling.windows;
               const int64_t row = rows * tiling.image_row();
               float* split = scratch + n;
               float* merged = split + n;
               LoadSplit(tiling, dtype, buffers.inputs[0], first, rows, scratch,
                         split);
               for (int64_t i = 1;
                    i < tiling.kernel_slices * tiling.kernel_rows; ++i) {
                 MergeRow(split, split + i * row, row);
               }
               const int64_t at = first * tiling.windows;
               float* out = OutputBlock(dtype, buffers.outputs[0], at, merged);
               WithColumns(tiling.kernel_columns, [&](auto columns) {
                 MergeColumns(split, out, windows, columns);
               });
               StoreBlock(dtype, out, buffers.outputs[0], at, windows);
             });
  }
};

template <typename T>
struct MaxTilesGrad {
  using Bits = typename Stored<T>::Bits;
  Tiling tiling;

  explicit MaxTilesGrad(const Tiling& windows) : tiling(windows) {}

  static bool Supports(const BoundOp& op) {
    return Tiling(PoolShape::Of(op)).kernel_columns == 2;
  }

  // Image rows of so many elements are not split.
  bool InPlace() const { return tiling.image_row() >= 32; }
  // Maxima and gradients, one for each element of an image row; rows that are
  // split. Of Bits, which may be half as large.
  int64_t ScratchFloats() const {
    return 2 * tiling.block() *
           (tiling.image_row() + (InPlace() ? 0 : tiling.slice_elements()));
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForTiles(tiling, ScratchFloats(), buffers, stream,
             [&](int64_t first, int64_t rows, float* scratch) {
               RunBlock(buffers, first, rows, reinterpret_cast<Bits*>(scratch));
             });
  }

 private:
  void RunBlock(const Buffers& buffers, int64_t first, int64_t rows,
                Bits* scratch) const {
    enum { kX, kOut, kOutGrad };
    const auto in = [&](int i) {
      return static_cast<const Bits*>(buffers.inputs[i]);
    };
    const int64_t windows = rows * tiling.windows;
    Bits* out = scratch;
    Bits* rest = out + 2 * windows;
    ForIsa([=, o = in(kOut) + first * tiling.windows,
            g = in(kOutGrad) + first * tiling.windows] {
#pragma GCC ivdep
      for (int64_t w = 0; w < windows; ++w) {
        out[2 * w] = out[2 * w + 1] = Stored<T>::Canonical(o[w]);
        rest[2 * w] = rest[2 * w + 1] = Stored<T>::PlusZero(g[w]);
      }
    });
    for (int64_t k = 0; k < tiling.kernel_slices; ++k) {
      const int64_t begin = tiling.Begin(first, k);
      Slice(in(kX) + begin, rows, out, rest,
            static_cast<Bits*>(buffers.outputs[0]) + begin);
    }
  }

  // Window rows within one slice of the image; `rest` is the scratch's last.
  void Slice(const Bits* x, int64_t rows, const Bits* out, Bits* rest,
             Bits* x_grad) const {
    const int64_t row = tiling.image_row();
    if (InPlace()) return Rows(x, out, rest, x_grad, rows, row);
    Bits* x_split = rest + rows * row;
    Bits* grad_split = x_split + rows * tiling.slice_elements();
    SplitRows(x, x_split, rows, tiling.kernel_rows, row);
    Rows(x_split, out, rest, grad_split, 1, rows * row);
    SplitRows(x_grad, static_cast<const Bits*>(grad_split), rows,
              tiling.kernel_rows, row);
  }

  // x as [rows][kernel_rows][n].
  void Rows(const Bits* x, const Bits* out, Bits* rest, Bits* x_grad,
            int64_t rows, int64_t n) const {
    ForIsa([=, kernel_rows = tiling.kernel_rows] {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < kernel_rows; ++i) {
          const int64_t at = (r * kernel_rows + i) * n;
          TakeMaxima<T>(x + at, out + r * n, rest + r * n, x_grad + at, n);
        }
      }
    });
  }
};

// make(op): the kernel; scratch_floats(op): what each of its threads needs.
template <typename Make, typename ScratchFloats>
Candidate TilesCandidate(const Make& make,
                         const ScratchFloats& scratch_floats) {
  Candidate candidate = OverImages(
      MakeCandidate("tiles", make), [scratch_floats](const BoundOp& op) {
        return std::max(1, op.context().threads) * scratch_floats(op);
      });
  candidate.supports = [one_layout = candidate.supports](const BoundOp& op) {
    return one_layout(op) && Tiling::Covers(PoolShape::Of(op));
  };
  return candidate;
}

Candidate MaxTilesCandidate() {
  const auto make = [](const BoundOp& op) {
    return MaxTiles{Tiling(PoolShape::Of(op)), op.inputs()[0].dtype};
  };
  return TilesCandidate(
      make, [make](const BoundOp& op) { return make(op).ScratchFloats(); });
}

Candidate MaxTilesGradCandidate() {
  using Run = std::function<void(const Buffers&, runtime::Stream&)>;
  const auto make = [](const BoundOp& op) {
    Run run;
    DispatchType(FloatTypes(), op.inputs()[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run = MaxTilesGrad<T>(Tiling(PoolShape::Of(op)));
    });
    return run;
  };
  Candidate candidate = TilesCandidate(make, [](const BoundOp& op) {
    return MaxTilesGrad<float>(Tiling(PoolShape::Of(op))).ScratchFloats();
  });
  candidate.supports = [covers = candidate.supports](const BoundOp& op) {
    return covers(op) && MaxTilesGrad<float>::Supports(op);
  };
  return candidate;
}

}  // namespace

void RegisterCpuPoolTiles(KernelRegistry& registry) {
  for (const char* op : kPools) {
    AddForSchema(registry, op, WithArgmax(MaxTilesCandidate(), false));
  }
  for (const char* op : kPoolGrads) {
    AddForSchema(registry, op, MaxTilesGradCandidate());
  }
}

}  // namespace kernels
}  // namespace halftone
