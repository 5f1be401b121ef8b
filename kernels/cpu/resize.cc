// Interpolation and its gradient: the rows that a row of the result is made of
// first, which lie side by side in memory, then the columns of their sum. Both
// ops are the same sums over tables of weights, the gradient's by columns of
// what are rows in the other: no order depends on threads.
#include "kernels/common/resize.h"

#include <algorithm>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// Each of `to` elements is a sum of `taps` neighbours out of `from`, times
// their weights; many a weight is 0.
struct Weights {
  int64_t from = 1, to = 1;
  int64_t taps = 1;
  std::vector<int32_t> begin;  // [to]
  std::vector<float> of;       // [taps][to]
  int32_t step = 0;            // from each of `begin` to the next; 0: differs

  float At(int64_t tap, int64_t i) const { return of[tap * to + i]; }
};

Weights WeightsOf(const ResizeDim& dim, bool gradient) {
  Weights weights;
  weights.from = gradient ? dim.out : dim.in;
  weights.to = gradient ? dim.in : dim.out;
  std::vector<int64_t> first(weights.to);
  for (int64_t i = 0; i < weights.to; ++i) {
    first[i] = gradient ? dim.Begin(i) : dim.Of(i).first;
    const int64_t end = gradient ? dim.End(i) : first[i] + dim.Of(i).count;
    weights.taps = std::max(weights.taps, end - first[i]);
  }
  weights.begin.resize(weights.to);
  weights.of.resize(weights.taps * weights.to);
  for (int64_t i = 0; i < weights.to; ++i) {
    const int64_t begin = std::min(first[i], weights.from - weights.taps);
    weights.begin[i] = static_cast<int32_t>(begin);
    for (int64_t k = 0; k < weights.taps; ++k) {
      weights.of[k * weights.to + i] =
          gradient ? dim.Share(begin + k, i) : dim.Share(i, begin + k);
    }
  }
  if (weights.to > 1) weights.step = weights.begin[1] - weights.begin[0];
  for (int64_t i = 1; i < weights.to; ++i) {
    if (weights.begin[i] - weights.begin[i - 1] != weights.step) {
      weights.step = 0;
    }
  }
  return weights;
}

// to[i] += w * from[i]; the first of a sum begins it.
void AddScaled(const float* from, float w, bool first, float* to, int64_t n) {
  ForIsa([=] {
    if (first) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = w * from[i];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] += w * from[i];
    }
  });
}

// What has no weight is not looked at: it may be infinite.
inline float Weighted(float w, float x) { return w != 0.0f ? w * x : 0.0f; }

// A tap of a row of single elements: to[i] += of[i] * from[place(i)].
template <typename Place>
void AddTap(const float* from, const Place& place, const float* of, bool first,
            float* to, int64_t n) {
  ForIsa([=] {
    if (first) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = Weighted(of[i], from[place(i)]);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] += Weighted(of[i], from[place(i)]);
    }
  });
}

// Two taps of neighbours, of[0, n) and of[n, 2 * n), in one pass.
void AddPairs(const float* from, const float* of, float* to, int64_t n) {
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      to[i] =
          Weighted(of[i], from[2 * i]) + Weighted(of[n + i], from[2 * i + 1]);
    }
  });
}

struct ResizeKernel {
  Weights d, h, w;
  int64_t planes, channels;
  DType dtype;

  ResizeKernel(const BoundOp& op, bool gradient) {
    const ResizeShape shape = ResizeShape::Of(op);
    d = WeightsOf(shape.dims[0], gradient);
    h = WeightsOf(shape.dims[1], gradient);
    w = WeightsOf(shape.dims[2], gradient);
    planes = shape.planes;
    channels = shape.channels;
    dtype = op.outputs()[0].dtype;
  }

  int64_t InRow() const { return w.from * channels; }
  int64_t OutRow() const { return w.to * channels; }
  // Rows of the result that are rounded at once.
  int64_t Group() const {
    return std::max<int64_t>(1, kConvertBlock / std::max<int64_t>(1, OutRow()));
  }
  // A row of one side and a group of the other.
  int64_t ScratchFloats() const { return InRow() + Group() * OutRow(); }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t tasks = planes * d.to * h.to;
    const int64_t work = d.taps * h.taps * InRow() + w.taps * OutRow();
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, work));
    ForTasksWithScratch(
        stream.threads(), tasks, grain, buffers.workspace, ScratchFloats(),
        [&](int64_t begin, int64_t end, float* scratch) {
          for (int64_t task = begin; task < end; task += Group()) {
            RunGroup(buffers, task, std::min(Group(), end - task), scratch);
          }
        });
  }

 private:
  void RunGroup(const Buffers& buffers, int64_t task, int64_t n,
                float* scratch) const {
    const int64_t at = task * OutRow();
    float* out = OutputBlock(dtype, buffers.outputs[0], at, scratch + InRow());
    for (int64_t i = 0; i < n; ++i) {
      const float* row = Rows(buffers.inputs[0], task + i, scratch);
      float* to = out + i * OutRow();
      channels == 1 ? Columns(row, to) : ColumnsOfChannels(row, to);
    }
    StoreBlock(dtype, out, buffers.outputs[0], at, n * OutRow());
  }

  // The rows that a row of the result is made of, as one.
  const float* Rows(const void* x, int64_t task, float* row) const {
    const int64_t y = task % h.to, z = task / h.to % d.to;
    const int64_t plane = task / h.to / d.to;
    // The lines of a slice lie side by side: short ones are converted at once.
    const int64_t lines = h.taps * InRow();
    const bool at_once = dtype == DType::kF32 || lines <= kConvertBlock;
    alignas(64) float buffer[kConvertBlock];
    bool first = true;
    for (int64_t k = 0; k < d.taps; ++k) {
      if (d.At(k, z) == 0) continue;
      const int64_t begin =
          (plane * d.from + d.begin[z] + k) * h.from + h.begin[y];
      const float* from =
          at_once ? LoadBlock(dtype, x, begin * InRow(), lines, buffer)
                  : nullptr;
      for (int64_t i = 0; i < h.taps; ++i) {
        const float weight = d.At(k, z) * h.At(i, y);
        if (weight == 0) continue;
        if (!at_once) {
          AddRow(x, begin + i, weight, first, row);
        } else if (weight == 1 && first && dtype == DType::kF32 &&
                   IsLast(z, y, k, i)) {
          // All there is: the weights of a row have the sum 1, but those of
          // gradients.
          return static_cast<const float*>(x) + (begin + i) * InRow();
        } else {
          AddScaled(from + i * InRow(), weight, first, row, InRow());
        }
        first = false;
      }
    }
    if (first) std::fill_n(row, InRow(), 0.0f);
    return row;
  }

  // Whether no tap after this one has a weight.
  bool IsLast(int64_t z, int64_t y, int64_t slice, int64_t line) const {
    for (int64_t k = slice; k < d.taps; ++k) {
      for (int64_t i = k == slice ? line + 1 : 0; i < h.taps; ++i) {
        if (d.At(k, z) * h.At(i, y) != 0) return false;
      }
    }
    return true;
  }

  void AddRow(const void* x, int64_t line, float weight, bool first,
              float* row) const {
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(0, InRow(), [&](int64_t at, int64_t n) {
      const float* from = LoadBlock(dtype, x, line * InRow() + at, n, buffer);
      AddScaled(from, weight, first, row + at, n);
    });
  }

  void Columns(const float* row, float* out) const {
    const int32_t* begin = w.begin.data();
    if (w.step == 2 && w.taps == 2) {
      return AddPairs(row + begin[0], w.of.data(), out, w.to);
    }
    for (int64_t k = 0; k < w.taps; ++k) {
      const float* of = w.of.data() + k * w.to;
      if (w.step == 2) {  // as it is for the gradient of twice the size
        const auto place = [](int64_t i) { return 2 * i; };
        AddTap(row + begin[0] + k, place, of, k == 0, out, w.to);
      } else {
        const auto place = [=](int64_t i) { return begin[i]; };
        AddTap(row + k, place, of, k == 0, out, w.to);
      }
    }
  }

  void ColumnsOfChannels(const float* row, float* out) const {
    for (int64_t i = 0; i < w.to; ++i, out += channels) {
      bool first = true;
      for (int64_t k = 0; k < w.taps; ++k) {
        const float weight = w.At(k, i);
        if (weight == 0) continue;
        AddScaled(row + (w.begin[i] + k) * channels, weight, first, out,
                  channels);
        first = false;
      }
      if (first) std::fill_n(out, channels, 0.0f);
    }
  }
};

Candidate ResizeCandidate(bool gradient) {
  return OverImages(MakeCandidate("tables",
                                  [gradient](const BoundOp& op) {
                                    return ResizeKernel(op, gradient);
                                  }),
                    [gradient](const BoundOp& op) {
                      return std::max(1, op.context().threads) *
                             ResizeKernel(op, gradient).ScratchFloats();
                    });
}

}  // namespace

void RegisterCpuResize(KernelRegistry& registry) {
  for (const char* op : kResizes) {
    AddForSchema(registry, op, ResizeCandidate(/*gradient=*/false));
  }
  for (const char* op : kResizeGrads) {
    AddForSchema(registry, op, ResizeCandidate(/*gradient=*/true));
  }
}

}  // namespace kernels
}  // namespace halftone
