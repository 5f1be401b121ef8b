// Maximum pooling and its gradient where the windows tile the image: no
// padding, no overlap, nothing left over, one channel side by side.
//
// A block of window rows is taken at once, its image rows split by their place
// in the window, so that all loops run over a block and not over an image row.
// The bits are those of the other candidates.
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/isa.h"
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
        const int64_t bytes = width * int64_t{sizeof(float)};
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

// One image row of n windows: the first maximum of each takes the gradient.
// open[w] is 1 until it was found, 0 after.
template <typename Columns>
void TakeMaxima(const float* x, const float* out, const float* grad,
                float* open, float* x_grad, int64_t n, Columns columns) {
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t w = 0; w < n; ++w) {
      const float o = out[w], g = grad[w];
      float still = open[w];
      for (int64_t j = 0; j < columns; ++j) {
        const float v = x[w * columns + j];
        const bool equal = (v == o) | ((v != v) & (o != o));
        const float take = equal ? still : 0.0f;
        // A sum as elsewhere: -0 becomes 0.
        x_grad[w * columns + j] = 0.0f + (take != 0.0f ? g : 0.0f);
        still -= take;
      }
      open[w] = still;
    }
  });
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

struct MaxTilesGrad {
  Tiling tiling;
  DType dtype;

  int64_t ScratchFloats() const {
    return tiling.block() * (3 * tiling.elements() + 3 * tiling.windows);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForTiles(tiling, ScratchFloats(), buffers, stream,
             [&](int64_t first, int64_t rows, float* scratch) {
               RunBlock(buffers, first, rows, scratch);
             });
  }

 private:
  void RunBlock(const Buffers& buffers, int64_t first, int64_t rows,
                float* scratch) const {
    enum { kX, kOut, kOutGrad };
    const int64_t n = rows * tiling.elements();
    const int64_t windows = rows * tiling.windows;
    const int64_t row = rows * tiling.image_row();
    const int64_t out_at = first * tiling.windows;
    float* x_split = scratch + n;
    float* grad_split = x_split + n;
    float* open = grad_split + n;
    const float* out =
        LoadBlock(dtype, buffers.inputs[kOut], out_at, windows, open + windows);
    const float* grad = LoadBlock(dtype, buffers.inputs[kOutGrad], out_at,
                                  windows, open + 2 * windows);
    LoadSplit(tiling, dtype, buffers.inputs[kX], first, rows, scratch, x_split);
    std::fill_n(open, windows, 1.0f);
    for (int64_t i = 0; i < tiling.kernel_slices * tiling.kernel_rows; ++i) {
      WithColumns(tiling.kernel_columns, [&](auto columns) {
        TakeMaxima(x_split + i * row, out, grad, open, grad_split + i * row,
                   windows, columns);
      });
    }
    const int64_t slice = rows * tiling.slice_elements();
    for (int64_t k = 0; k < tiling.kernel_slices; ++k) {
      const int64_t at = tiling.Begin(first, k);
      float* x_grad = OutputBlock(dtype, buffers.outputs[0], at, scratch);
      SplitRows(x_grad, static_cast<const float*>(grad_split) + k * slice, rows,
                tiling.kernel_rows, tiling.image_row());
      StoreBlock(dtype, x_grad, buffers.outputs[0], at, slice);
    }
  }
};

template <typename Kernel>
Candidate TilesCandidate() {
  const auto make = [](const BoundOp& op) {
    return Kernel{Tiling(PoolShape::Of(op)), op.inputs()[0].dtype};
  };
  Candidate candidate =
      OverImages(MakeCandidate("tiles", make), [make](const BoundOp& op) {
        return std::max(1, op.context().threads) * make(op).ScratchFloats();
      });
  candidate.supports = [one_layout = candidate.supports](const BoundOp& op) {
    return one_layout(op) && Tiling::Covers(PoolShape::Of(op));
  };
  return candidate;
}

}  // namespace

void RegisterCpuPoolTiles(KernelRegistry& registry) {
  for (const char* op : kPools) {
    AddForSchema(registry, op, TilesCandidate<MaxTiles>());
  }
  for (const char* op : kPoolGrads) {
    AddForSchema(registry, op, TilesCandidate<MaxTilesGrad>());
  }
}

}  // namespace kernels
}  // namespace halftone
