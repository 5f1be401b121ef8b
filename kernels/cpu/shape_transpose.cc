// transpose: any permutation; move_channels, convert_layout and pixel_shuffle
// are such, too.
// Rows are copied where the innermost dim stays; elsewhere blocks of the two
// dims that are innermost before and after are turned in registers.
#include <algorithm>
#include <cstring>

#include "absl/base/attributes.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/streamed_output.h"
#include "kernels/cpu/transpose.h"

namespace halftone {
namespace kernels {
namespace {

// Bytes that are read of a column at once, and that are made at once where
// rows are short, at least.
constexpr int64_t kColumnBytes = 128, kMadeBytes = 2048;
// Rows and columns of a block.
constexpr int64_t kBlock = kTransposed;

// The nest without two of its dims (b may be a) and their extents.
struct Loops {
  Extents dims, in_strides, out_strides;
  int64_t count = 1;

  // Offsets of the index-th combination of the loops.
  void Offsets(int64_t index, int64_t* in, int64_t* out) const {
    *in = *out = 0;
    for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
      const int64_t at = index % dims[i];
      index /= dims[i];
      *in += at * in_strides[i];
      *out += at * out_strides[i];
    }
  }
};

Loops LoopsWithout(const Nest& nest, const Extents& out_strides, int a, int b) {
  Loops loops;
  for (int i = 0; i < nest.rank(); ++i) {
    if (i == a || i == b) continue;
    loops.dims.push_back(nest.dims[i]);
    loops.in_strides.push_back(nest.strides[i]);
    loops.out_strides.push_back(out_strides[i]);
    loops.count *= nest.dims[i];
  }
  return loops;
}

// A matrix in `rows` (contiguous in the input, `out_stride` apart in the
// output) and `columns` (`in_stride` apart, contiguous in the output).
struct Matrix {
  int64_t rows, columns, in_stride, out_stride;
};

// `rows` rows of a matrix with fewer rows or columns than a block.
template <typename T>
void TransposeThin(const T* in, T* out, const Matrix& m, int64_t rows) {
  if (m.columns <= kBlock) {
    for (int64_t c = 0; c < m.columns; ++c) {
      const T* from = in + c * m.in_stride;
      for (int64_t r = 0; r < rows; ++r) out[r * m.out_stride + c] = from[r];
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    T* to = out + r * m.out_stride;
    for (int64_t c = 0; c < m.columns; ++c) to[c] = in[c * m.in_stride + r];
  }
}

// `rows` rows; some elements of the last blocks once more.
template <typename T>
void TransposeStrip(const T* in, T* out, const Matrix& m, int64_t rows) {
  if (std::min(rows, m.columns) < kBlock) {
    return TransposeThin(in, out, m, rows);
  }
  ForIsa([=] {
    for (int64_t c = 0; c < m.columns; c += kBlock) {
      const int64_t column = std::min(c, m.columns - kBlock);
      for (int64_t r = 0; r < rows; r += kBlock) {
        const int64_t row = std::min(r, rows - kBlock);
        TransposeBlock(in + column * m.in_stride + row, m.in_stride,
                       out + row * m.out_stride + column, m.out_stride);
      }
    }
  });
}

struct TransposeKernel {
  DType dtype;
  int64_t elements;
  bool copies_rows;  // the innermost dim stays
  bool same_order;   // nothing moves
  Matrix matrix;     // of one row if copies_rows
  Loops loops;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    if (elements == 0) return;
    const void* in = buffers.inputs[0];
    void* out = buffers.outputs[0];
    const int64_t size = SizeOf(dtype);
    if (same_order) {
      return CopyBytes(in, out, elements * size, stream.threads());
    }
    switch (size) {
      case 1:
        return Run<uint8_t>(in, out, stream.threads());
      case 2:
        return Run<uint16_t>(in, out, stream.threads());
      case 4:
        return Run<uint32_t>(in, out, stream.threads());
      default:
        return Run<uint64_t>(in, out, stream.threads());
    }
  }

 private:
  template <typename T>
  void Run(const void* in_data, void* out_data, int threads) const {
    const T* in = static_cast<const T*>(in_data);
    T* out = static_cast<T*>(out_data);
    // Rows that lie side by side in the output make parts that can be streamed.
    const bool is_dense = matrix.out_stride == matrix.columns;
    const StreamedOutput output(out, dtype, elements, !is_dense);
    constexpr int64_t kSize = sizeof(T);
    const int64_t made_rows = kMadeBytes / kSize / matrix.columns;
    const int64_t strip = std::max(kColumnBytes / kSize,
                                   is_dense ? made_rows / kBlock * kBlock : 0);
    const int64_t strips = (matrix.rows + strip - 1) / strip;
    const int64_t tasks = loops.count * strips;
    const int64_t bytes = elements * kSize / tasks + 1;
    const int64_t grain = std::max<int64_t>(1, kCopyGrain / bytes);
    ParallelFor(threads, tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t from, to;
        loops.Offsets(task / strips, &from, &to);
        if (copies_rows) {
          memcpy(out + to, in + from, matrix.columns * sizeof(T));
          continue;
        }
        const int64_t row = task % strips * strip;
        const int64_t rows = std::min(strip, matrix.rows - row);
        output.WritePart(to + row * matrix.out_stride, rows * matrix.columns,
                         [&](void* made) {
                           TransposeStrip(in + from + row,
                                          static_cast<T*>(made), matrix, rows);
                         });
      }
      FinishStores();
    });
  }
};

// Strides of the nest's dims in the output, whose order they are in.
Extents OutStrides(const Nest& nest) {
  Extents strides(nest.rank(), 1);
  for (int i = nest.rank() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * nest.dims[i + 1];
  }
  return strides;
}

// `strides`: of the input, per dim of the output.
TransposeKernel Permute(const TensorDesc& out, const Extents& strides) {
  const Nest nest = MakeNest(out, strides);
  TransposeKernel kernel{out.dtype,         out.elements(),     false,
                         nest.contiguous(), Matrix{1, 1, 1, 1}, Loops()};
  if (kernel.same_order || kernel.elements == 0) return kernel;
  const Extents out_strides = OutStrides(nest);
  const int last = nest.rank() - 1;
  // Some dim is innermost in the input.
  const int first =
      static_cast<int>(std::find(nest.strides.begin(), nest.strides.end(), 1) -
                       nest.strides.begin());
  kernel.copies_rows = first == last;
  kernel.matrix = {first == last ? 1 : nest.dims[first], nest.dims[last],
                   nest.strides[last], out_strides[first]};
  kernel.loops = LoopsWithout(nest, out_strides, first, last);
  return kernel;
}

TransposeKernel MakeTranspose(const BoundOp& op) {
  return Permute(op.Output("Out"), TransposedStrides(op));
}
TransposeKernel MakeConvertLayout(const BoundOp& op) {
  return Permute(op.Output("Out"), StridesOf(op.inputs()[0]));
}
TransposeKernel MakeShuffle(const BoundOp& op) {
  const PermutedView view = ShuffledViewOf(op);
  return Permute(view.out, view.strides);
}

}  // namespace

void RegisterCpuTranspose(KernelRegistry& registry) {
  for (const char* op : {"transpose", "move_channels"}) {
    AddForSchema(registry, op, MakeCandidate("tiles", MakeTranspose));
  }
  AddForSchema(registry, "convert_layout",
               MakeCandidate("tiles", MakeConvertLayout));
  for (const char* op : {"pixel_shuffle", "pixel_unshuffle"}) {
    AddForSchema(registry, op, MakeCandidate("tiles", MakeShuffle));
  }
}

}  // namespace kernels
}  // namespace halftone
