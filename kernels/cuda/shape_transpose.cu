// transpose and convert_layout: any permutation. Rows are copied where the
// innermost dim stays; elsewhere tiles of the two dims that are innermost
// before and after go through shared memory, so that both sides are read and
// written side by side.
#include <algorithm>

#include "kernels/common/shapes.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/permutation.h"
#include "kernels/cuda/shape.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr int kTile = 32;

// A matrix in `rows` (contiguous in the input, `out_stride` apart in the
// output) and `columns` (`in_stride` apart, contiguous in the output), for
// each of `count` combinations of the loops around it.
struct Tiles {
  int64_t rows, columns, in_stride, out_stride, count;
  Loops in, out;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TileKernel(const __grid_constant__ Tiles m, const T* from, T* to) {
  HT_SHARED(T[kTile][kTile + 1], tile);
  const int64_t row_tiles = CeilDiv(m.rows, kTile);
  const int64_t column_tiles = CeilDiv(m.columns, kTile);
  const int64_t matrix = blockIdx.x / (row_tiles * column_tiles);
  const int64_t which = blockIdx.x % (row_tiles * column_tiles);
  const int64_t row0 = which % row_tiles * kTile;
  const int64_t column0 = which / row_tiles * kTile;
  const int tx = threadIdx.x % kTile, ty = threadIdx.x / kTile;
  const T* in = from + m.in.OffsetOf(matrix);
  T* out = to + m.out.OffsetOf(matrix);
  for (int c = ty; c < kTile; c += kThreads / kTile) {
    if (column0 + c < m.columns && row0 + tx < m.rows) {
      tile[c][tx] = in[(column0 + c) * m.in_stride + row0 + tx];
    }
  }
  __syncthreads();
  for (int r = ty; r < kTile; r += kThreads / kTile) {
    if (row0 + r < m.rows && column0 + tx < m.columns) {
      out[(row0 + r) * m.out_stride + column0 + tx] = tile[tx][r];
    }
  }
}

// Rows of `width` units, `count` of them; `loops` says where one starts in the
// input, in units.
struct RowCopies {
  Divider width;
  int64_t total;
  Loops loops;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    RowKernel(const __grid_constant__ RowCopies rows, const T* from, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows.total) return;
  const int64_t row = rows.width.Divide(i);
  to[i] = from[rows.loops.OffsetOf(row) + i - row * rows.width.divisor()];
}

struct TransposeKernel : Permutation {
  explicit TransposeKernel(const Permutation& permutation)
      : Permutation(permutation) {}

  void operator()(const Buffers& buffers, Launcher& launch) const {
    Run(buffers.inputs[0], buffers.outputs[0], launch);
  }
  void Run(const void* from, void* to, Launcher& launch) const {
    if (elements == 0) return;
    if (nest.contiguous()) {
      launch.Copy(to, from, elements * size);
    } else if (nest.strides.back() == 1) {
      CopyRows(launch, from, to);
    } else {
      CopyTiles(launch, from, to);
    }
  }

 private:
  void CopyRows(Launcher& launch, const void* from, void* to) const {
    const int64_t row = nest.dims.back() * size;
    int64_t unit = CommonUnit({row, Address(from), Address(to)});
    for (int k = 0; k + 1 < nest.rank(); ++k) {
      unit = CommonUnit({unit, nest.strides[k] * size});
    }
    Nest outer = nest;
    outer.dims.pop_back();
    outer.strides.pop_back();
    for (int64_t& stride : outer.strides) stride = stride * size / unit;
    WithUnit(unit, [&](auto zero) {
      using T = decltype(zero);
      const RowCopies rows{Divider(row / unit), elements * size / unit,
                           Loops(outer)};
      launch(RowKernel<T>, CeilDiv(rows.total, kThreads), kThreads, rows,
             static_cast<const T*>(from), static_cast<T*>(to));
    });
  }

  void CopyTiles(Launcher& launch, const void* from, void* to) const {
    const Tiles tiles = MakeTiles();
    const int64_t blocks = CeilDiv(tiles.rows, kTile) *
                           CeilDiv(tiles.columns, kTile) * tiles.count;
    WithElement(size, [&](auto zero) {
      using T = decltype(zero);
      launch(TileKernel<T>, blocks, kThreads, tiles,
             static_cast<const T*>(from), static_cast<T*>(to));
    });
  }

  Tiles MakeTiles() const {
    const int last = nest.rank() - 1;
    // Some dim is innermost in the input.
    const int first = static_cast<int>(
        std::find(nest.strides.begin(), nest.strides.end(), 1) -
        nest.strides.begin());
    Nest in, out;
    int64_t stride = 1;
    Tiles tiles;
    tiles.rows = nest.dims[first];
    tiles.columns = nest.dims[last];
    tiles.in_stride = nest.strides[last];
    tiles.out_stride = tiles.count = 1;
    for (int k = last; k >= 0; --k) {
      if (k == first) tiles.out_stride = stride;
      if (k != first && k != last) {
        in.dims.insert(in.dims.begin(), nest.dims[k]);
        in.strides.insert(in.strides.begin(), nest.strides[k]);
        out.strides.insert(out.strides.begin(), stride);
        tiles.count *= nest.dims[k];
      }
      stride *= nest.dims[k];
    }
    out.dims = in.dims;
    tiles.in = Loops(in);
    tiles.out = Loops(out);
    return tiles;
  }
};

// `view_of`: the output and the strides of the input per dim of it.
Candidate MakeTranspose(PermutedView (*view_of)(const BoundOp&)) {
  Candidate candidate = CudaCandidate("tiles", [view_of](const BoundOp& op) {
    const PermutedView view = view_of(op);
    return TransposeKernel(Permutation(view.out, view.strides));
  });
  candidate.supports = [view_of](const BoundOp& op) {
    const PermutedView view = view_of(op);
    return Loops::Fits(MakeNest(view.out, view.strides));
  };
  return candidate;
}

PermutedView Transposed(const BoundOp& op) {
  return {op.outputs()[0], TransposedStrides(op)};
}
PermutedView SameDims(const BoundOp& op) {
  return {op.outputs()[0], StridesOf(op.inputs()[0])};
}

}  // namespace

absl::Status Permute(const Permutation& permutation, const void* from, void* to,
                     runtime::Stream& stream, const std::string& op) {
  Launcher launch(stream, op);
  TransposeKernel(permutation).Run(from, to, launch);
  return launch.status();
}

void RegisterCudaTranspose(KernelRegistry& registry) {
  for (const char* op : {"transpose", "move_channels"}) {
    AddForSchema(registry, op, MakeTranspose(Transposed));
  }
  AddForSchema(registry, "convert_layout", MakeTranspose(SameDims));
  for (const char* op : {"pixel_shuffle", "pixel_unshuffle"}) {
    AddForSchema(registry, op, MakeTranspose(ShuffledViewOf));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
