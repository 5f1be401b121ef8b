// Pooling: the rows of a window first, which lie side by side in memory, then
// the columns of their result.
#include "kernels/cpu/pool.h"

#include "kernels/common/dispatch.h"
#include "kernels/cpu/channels.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/sums.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

struct Add {
  float operator()(float a, float b) const { return a + b; }
};

// to[i] = f(to[i], from[i]).
template <typename F>
void Merge(float* to, const float* from, int64_t n) {
  ForIsa([=, f = F()] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = f(to[i], from[i]);
  });
}

// to[i] = f(to[i], from[i * stride]).
template <typename F>
void MergeStrided(float* to, const float* from, int64_t stride, int64_t n) {
  ForIsa([=, f = F()] {
    if (stride == 2) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = f(to[i], from[2 * i]);
      return;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = f(to[i], from[i * stride]);
  });
}

struct PoolKernel {
  PoolShape shape;
  DType dtype;
  std::vector<Range> columns;  // of adaptive windows

  explicit PoolKernel(const BoundOp& op)
      : shape(PoolShape::Of(op)), dtype(op.inputs()[0].dtype) {
    if (shape.w.adaptive) columns = shape.w.Windows();
  }

  // A row of the image and a row of the result.
  static int64_t ScratchFloats(const PoolShape& shape) {
    return shape.InRow() + shape.OutRow();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t tasks = shape.planes * shape.d.out * shape.h.out;
    ForEachWithScratch(
        stream.threads(), tasks,
        shape.d.kernel * shape.h.kernel * shape.InRow(), buffers.workspace,
        ScratchFloats(shape), [&](int64_t task, float* scratch) {
          const int64_t row_begin = task * shape.OutRow();
          float* row = scratch;
          float* out = dtype == DType::kF32
                           ? static_cast<float*>(buffers.outputs[0]) + row_begin
                           : scratch + shape.InRow();
          if (shape.max) {
            PoolRow<Larger>(buffers.inputs[0], task, row, out);
          } else {
            PoolRow<Add>(buffers.inputs[0], task, row, out);
            Divide(task, out);
          }
          StoreBlock(dtype, out, buffers.outputs[0], row_begin, shape.OutRow());
        });
  }

 private:
  template <typename F>
  void PoolRow(const void* x, int64_t task, float* row, float* out) const {
    const Range slices = shape.d.Window(Slice(task));
    const Range window = shape.h.Window(task % shape.h.out);
    if (slices.size() <= 0 || window.size() <= 0 || shape.w.in == 0) {
      std::fill_n(out, shape.OutRow(), shape.of_nothing);
      return;
    }
    const int64_t plane = task / shape.h.out / shape.d.out;
    const int64_t first =
        (plane * shape.d.in + slices.begin) * shape.h.in + window.begin;
    const float* rows =
        MergeRows<F>(x, first, slices.size(), window.size(), row);
    if (shape.channels > 1) {
      ColumnsOfChannels<F>(rows, out);
    } else if (shape.w.adaptive) {
      AdaptiveColumns<F>(rows, out);
    } else if (shape.w.out == 1) {
      out[0] = WholeWindow<F>(rows);
    } else {
      Columns<F>(rows, out);
    }
  }

  // Of the windows of a task, along the depth.
  int64_t Slice(int64_t task) const { return task / shape.h.out % shape.d.out; }

  // `count` rows of so many slices of the image, from row `first` on, merged
  // into one.
  template <typename F>
  const float* MergeRows(const void* x, int64_t first, int64_t slices,
                         int64_t count, float* row) const {
    const int64_t width = shape.InRow();
    if (slices * count == 1 && dtype == DType::kF32) {
      return static_cast<const float*>(x) + first * width;
    }
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(0, width, [&](int64_t at, int64_t n) {
      for (int64_t r = 0; r < slices * count; ++r) {
        const int64_t line = first + r / count * shape.h.in + r % count;
        const float* from = LoadBlock(dtype, x, line * width + at, n, buffer);
        if (r == 0) {
          std::copy_n(from, n, row + at);
        } else {
          Merge<F>(row + at, from, n);
        }
      }
    });
    return row;
  }

  template <typename F>
  void Columns(const float* row, float* out) const {
    const PoolDim& w = shape.w;
    for (int64_t o = 0; o < w.out; ++o) {
      // A window that begins in the padding begins with its first element.
      const Range window = w.Window(o);
      out[o] = window.size() > 0 ? row[window.begin] : shape.of_nothing;
    }
    for (int64_t j = 1; j < w.kernel; ++j) {
      // Not those that begin with element j.
      const Range with = w.WindowsWith(j);
      const int64_t from = std::max(
          with.begin,
          (std::max<int64_t>(0, w.before - j + 1) + w.stride - 1) / w.stride);
      if (from >= with.end) continue;
      MergeStrided<F>(out + from, row + from * w.stride - w.before + j,
                      w.stride, with.end - from);
    }
  }

  // The same of one channel: too little for calls.
  template <typename F>
  void AdaptiveColumns(const float* row, float* out) const {
    for (int64_t o = 0; o < shape.w.out; ++o) {
      const Range window = columns[o];
      float result = row[window.begin];
      for (int64_t i = window.begin + 1; i < window.end; ++i) {
        result = F()(result, row[i]);
      }
      out[o] = result;
    }
  }

  template <typename F>
  void ColumnsOfChannels(const float* row, float* out) const {
    const int64_t c = shape.channels;
    for (int64_t o = 0; o < shape.w.out; ++o, out += c) {
      const Range window = shape.w.Window(o);
      if (window.size() <= 0) {
        std::fill_n(out, c, shape.of_nothing);
        continue;
      }
      std::copy_n(row + window.begin * c, c, out);
      for (int64_t i = window.begin + 1; i < window.end; ++i) {
        Merge<F>(out, row + i * c, c);
      }
    }
  }

  template <typename F>
  float WholeWindow(const float* row) const {
    const Range window = shape.w.Window(0);
    if (window.size() <= 0) return shape.of_nothing;
    const float* from = row + window.begin;
    const int64_t n = window.size();
    float result = from[0];
    if constexpr (std::is_same<F, Add>::value) {
      float* to = &result;
      ForIsa([=] { *to = SumOf(n, [=](int64_t i) { return from[i]; }); });
    } else {
      for (int64_t i = 1; i < n; ++i) result = F()(result, from[i]);
    }
    return result;
  }

  void Divide(int64_t task, float* out) const {
    const LineDivisors divisors(shape, columns, Slice(task),
                                task % shape.h.out);
    for (int64_t ow = 0; ow < shape.w.out; ++ow) {
      const float divisor = divisors.At(ow);
      float* to = out + ow * shape.channels;
      for (int64_t c = 0; c < shape.channels; ++c) to[c] /= divisor;
    }
  }
};

}  // namespace

void RegisterCpuPool(KernelRegistry& registry) {
  const Candidate rows =
      MakeCandidate("rows", [](const BoundOp& op) { return PoolKernel(op); });
  const auto floats = [](const BoundOp& op) {
    return std::max(1, op.context().threads) *
           PoolKernel::ScratchFloats(PoolShape::Of(op));
  };
  RegisterCpuPoolTiles(registry);
  for (const char* op : kPools) {
    AddForSchema(registry, op, WithArgmax(OverImages(rows, floats), false));
  }
  RegisterCpuPoolArgmaxLast(registry);
  RegisterCpuPoolArgmax(registry);
  RegisterCpuPoolMaxGradLast(registry);
  RegisterCpuPoolMaxGrad(registry);
  RegisterCpuPoolGrad(registry);
}

}  // namespace kernels
}  // namespace halftone
