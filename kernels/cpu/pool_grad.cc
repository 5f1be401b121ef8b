// The gradient of pooling, plane by plane, added in f32.
//
// Element j of neighbouring windows lies `stride` columns apart. So that loops
// over windows run over neighbours in memory, a row of one channel is kept in
// phases: the columns 0, stride, 2 * stride ..., then 1, stride + 1 ....
#include "kernels/common/dispatch.h"
#include "kernels/cpu/channels.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"

namespace halftone {
namespace kernels {
namespace {

// to[i * stride + c] += from[i * channels + c] for windows i, channels c.
void Spread(float* to, int64_t stride, const float* from, int64_t windows,
            int64_t channels) {
  if (windows * channels == 1) {  // as adaptive windows are
    *to += *from;
    return;
  }
  ForIsa([=] {
    for (int64_t i = 0; i < windows; ++i) {
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) {
        to[i * stride + c] += from[i * channels + c];
      }
    }
  });
}

// The same where x is the maximum and none was found before: open[i] is 1
// until then, 0 after.
void SpreadToMaximum(const float* x, float* to, int64_t stride,
                     const float* out, const float* grad, float* open,
                     int64_t windows, int64_t channels) {
  if (windows * channels == 1) {
    const bool equal = (*x == *out) | ((*x != *x) & (*out != *out));
    if (!equal || *open == 0.0f) return;
    *to += *grad;
    *open = 0;
    return;
  }
  ForIsa([=] {
    for (int64_t i = 0; i < windows; ++i) {
      const float* xs = x + i * stride;
      float* tos = to + i * stride;
      const int64_t at = i * channels;
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) {
        const float v = xs[c], o = out[at + c], g = grad[at + c];
        const bool equal = (v == o) | ((v != v) & (o != o));
        const float take = equal ? open[at + c] : 0.0f;
        tos[c] += take != 0.0f ? g : 0.0f;
        open[at + c] -= take;
      }
    }
  });
}

// from[k * stride] to to[k], or back.
template <bool kBack>
void Phase(float* strided, float* dense, int64_t stride, int64_t n) {
  ForIsa([=] {
    const auto copy = [=](int64_t s) {
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) {
        if (kBack) {
          strided[k * s] = dense[k];
        } else {
          dense[k] = strided[k * s];
        }
      }
    };
    stride == 2 ? copy(2) : copy(stride);
  });
}

// How a plane lies in f32.
struct PlaneLayout {
  int64_t rows, columns, channels;
  int64_t phases = 1, phase_columns;

  explicit PlaneLayout(const PoolShape& shape)
      : rows(shape.d.in * shape.h.in),
        columns(shape.w.in),
        channels(shape.channels),
        // Windows further apart than the row is long have no neighbours.
        phases(channels == 1 && shape.w.stride < columns ? shape.w.stride : 1),
        phase_columns((columns + phases - 1) / phases) {}

  int64_t row_floats() const { return phases * phase_columns * channels; }
  int64_t floats() const { return rows * row_floats(); }
  int64_t elements() const { return rows * columns * channels; }
  int64_t Column(int64_t c) const {
    if (phases == 1) return c * channels;
    return (c % phases * phase_columns + c / phases) * channels;
  }

  // `begin`: the plane's first element in the tensor.
  void Load(DType dtype, const void* tensor, int64_t begin,
            float* plane) const {
    alignas(64) float buffer[kConvertBlock];
    ForRowBlocks([&](int64_t row, int64_t column, int64_t n) {
      const int64_t at = begin + row * columns * channels + column;
      const float* from = LoadBlock(dtype, tensor, at, n, buffer);
      Copy<false>(const_cast<float*>(from), plane, row, column, n);
    });
  }
  void Store(DType dtype, float* plane, void* tensor, int64_t begin) const {
    alignas(64) float buffer[kConvertBlock];
    ForRowBlocks([&](int64_t row, int64_t column, int64_t n) {
      const int64_t at = begin + row * columns * channels + column;
      float* to = OutputBlock(dtype, tensor, at, buffer);
      Copy<true>(to, plane, row, column, n);
      StoreBlock(dtype, to, tensor, at, n);
    });
  }

 private:
  // body(row, first element of the row, elements): whole groups of phases.
  template <typename Body>
  void ForRowBlocks(const Body& body) const {
    const int64_t most =
        phases > kConvertBlock ? 1 : kConvertBlock / phases * phases;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t at = 0; at < columns * channels; at += most) {
        body(row, at, std::min(most, columns * channels - at));
      }
    }
  }

  template <bool kBack>
  void Copy(float* elements, float* plane, int64_t row, int64_t at,
            int64_t n) const {
    float* to = plane + row * row_floats();
    if (phases == 1) {
      kBack ? std::copy_n(to + at, n, elements)
            : std::copy_n(elements, n, to + at);
      return;
    }
    for (int64_t p = 0; p < std::min(phases, n); ++p) {
      Phase<kBack>(elements + p, to + Column(at + p), phases,
                   (n - p + phases - 1) / phases);
    }
  }
};

struct PoolGradKernel {
  PoolShape shape;
  PlaneLayout layout;
  DType dtype;
  std::vector<Range> columns;  // of adaptive windows
  // Of adaptive windows and one channel: a column's k-th window, the last
  // first, or -1: it has no more.
  std::vector<std::vector<int32_t>> windows_of;

  PoolGradKernel(const PoolShape& pool, DType type)
      : shape(pool), layout(pool), dtype(type) {
    if (!shape.w.adaptive) return;
    columns = shape.w.Windows();
    if (shape.max || shape.channels != 1) return;
    std::vector<size_t> found(shape.w.in);
    for (int64_t ow = shape.w.out - 1; ow >= 0; --ow) {
      for (int64_t c = columns[ow].begin; c < columns[ow].end; ++c) {
        if (found[c] == windows_of.size()) {
          windows_of.emplace_back(shape.w.in, -1);
        }
        windows_of[found[c]++][c] = static_cast<int32_t>(ow);
      }
    }
  }

  static bool Supports(const PoolShape&) { return true; }

  // Planes of the gradient and, for a maximum, of x; rows of the result: its
  // gradient and, for a maximum, itself and what is open. Rows of the image, a
  // share of each column's.
  int64_t ScratchFloats() const {
    return (shape.max ? 2 : 1) * layout.floats() +
           (shape.max ? 3 : 1) * shape.OutRow() +
           static_cast<int64_t>(windows_of.size()) * shape.w.in;
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForEachWithScratch(
        stream.threads(), shape.planes, layout.elements(), buffers.workspace,
        ScratchFloats(),
        [&](int64_t p, float* scratch) { RunPlane(buffers, p, scratch); });
  }

 private:
  void RunPlane(const Buffers& buffers, int64_t p, float* scratch) const {
    enum { kX, kOut, kOutGrad };
    const int64_t row = shape.OutRow();
    float* x_grad = scratch;
    float* out_grad = x_grad + layout.floats();
    float* out = out_grad + row;
    float* open = out + row;
    float* x = open + row;
    if (shape.max) {
      layout.Load(dtype, buffers.inputs[kX], p * layout.elements(), x);
    }
    std::fill_n(x_grad, layout.floats(), 0.0f);
    const int64_t windows = shape.d.out * shape.h.out;
    for (int64_t line = 0; line < windows; ++line) {
      const int64_t at = (p * windows + line) * row;
      const float* g =
          LoadBlock(dtype, buffers.inputs[kOutGrad], at, row, out_grad);
      if (shape.max) {
        const float* o = LoadBlock(dtype, buffers.inputs[kOut], at, row, out);
        std::fill_n(open, row, 1.0f);
        MaximumRow(line, x, o, g, open, x_grad);
      } else {
        Divide(line, g, out_grad);
        MeanRow(line, out_grad, out_grad + row, x_grad);
      }
    }
    layout.Store(dtype, x_grad, buffers.outputs[0], p * layout.elements());
  }

  void MaximumRow(int64_t line, const float* x, const float* out,
                  const float* grad, float* open, float* x_grad) const {
    ForRuns(line, [&](int64_t to, int64_t from, int64_t windows) {
      if (shape.channels == 1) {  // one run over windows
        SpreadToMaximum(x + to, x_grad + to, 0, out + from, grad + from,
                        open + from, 1, windows);
      } else {
        SpreadToMaximum(x + to, x_grad + to, shape.w.stride * shape.channels,
                        out + from, grad + from, open + from, windows,
                        shape.channels);
      }
    });
  }

  void MeanRow(int64_t line, const float* grad, float* shares,
               float* x_grad) const {
    if (!windows_of.empty()) return AdaptiveMeans(line, grad, shares, x_grad);
    ForRuns(line, [&](int64_t to, int64_t from, int64_t windows) {
      if (shape.channels == 1) {
        Spread(x_grad + to, 0, grad + from, 1, windows);
      } else {
        Spread(x_grad + to, shape.w.stride * shape.channels, grad + from,
               windows, shape.channels);
      }
    });
  }

  // body(place in a plane, place in a row of results, windows) for each
  // element of a line of windows, in row-major order.
  template <typename Body>
  void ForRuns(int64_t line, const Body& body) const {
    ForRows(line, [&](int64_t i) { ForColumns(i, body); });
  }

  // body(row of the image) for each row of a line of windows.
  template <typename Body>
  void ForRows(int64_t line, const Body& body) const {
    const Range slices = shape.d.Window(line / shape.h.out);
    const Range rows = shape.h.Window(line % shape.h.out);
    for (int64_t z = slices.begin; z < slices.end; ++z) {
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        body(z * shape.h.in + y);
      }
    }
  }

  // ForAdaptiveColumns of one channel: what each column gets is found once for
  // all rows. (A 0 more changes no sum that began with 0.)
  void AdaptiveMeans(int64_t line, const float* grad, float* shares,
                     float* x_grad) const {
    const int64_t n = shape.w.in;
    const int64_t most = static_cast<int64_t>(windows_of.size());
    for (int64_t k = 0; k < most; ++k) {
      for (int64_t c = 0; c < n; ++c) {
        const int32_t window = windows_of[k][c];
        shares[k * n + c] = window < 0 ? 0.0f : grad[window];
      }
    }
    ForRows(line, [&](int64_t i) {
      ForIsa([=, to = x_grad + i * layout.row_floats()] {
        for (int64_t k = 0; k < most; ++k) {
#pragma GCC ivdep
          for (int64_t c = 0; c < n; ++c) to[c] += shares[k * n + c];
        }
      });
    });
  }

  template <typename Body>
  void ForColumns(int64_t i, const Body& body) const {
    if (shape.w.adaptive) {
      ForAdaptiveColumns(i, body);
      return;
    }
    for (int64_t j = 0; j < shape.w.kernel; ++j) {
      const Range with = shape.w.WindowsWith(j);
      if (with.size() <= 0) continue;
      const int64_t column = with.begin * shape.w.stride - shape.w.before + j;
      body(i * layout.row_floats() + layout.Column(column),
           with.begin * shape.channels, with.size());
    }
  }

  // Windows of row i one by one, the last first: a column then gets its shares
  // in the order in which it would get them from windows of one size.
  template <typename Body>
  void ForAdaptiveColumns(int64_t i, const Body& body) const {
    for (int64_t ow = shape.w.out - 1; ow >= 0; --ow) {
      const Range window = columns[ow];
      for (int64_t c = window.begin; c < window.end; ++c) {
        body(i * layout.row_floats() + layout.Column(c), ow * shape.channels,
             1);
      }
    }
  }

  void Divide(int64_t line, const float* grad, float* shares) const {
    const LineDivisors divisors(shape, columns, line / shape.h.out,
                                line % shape.h.out);
    for (int64_t ow = 0; ow < shape.w.out; ++ow) {
      const float divisor = divisors.At(ow);
      for (int64_t c = 0; c < shape.channels; ++c) {
        const int64_t at = ow * shape.channels + c;
        shares[at] = grad[at] / divisor;
      }
    }
  }
};

}  // namespace

void RegisterCpuPoolGrad(KernelRegistry& registry) {
  const Candidate planes = PoolCandidate<PoolGradKernel>("planes");
  for (const char* op : kPoolGrads) AddForSchema(registry, op, planes);
}

}  // namespace kernels
}  // namespace halftone
