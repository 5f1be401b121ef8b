// The gradient of 2-d pooling, plane by plane, added in f32.
#include "kernels/cpu/channels.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"

namespace halftone {
namespace kernels {
namespace {

// to[i * to_stride + c] += from[i * channels + c] for windows i, channels c.
void Spread(float* to, int64_t to_stride, const float* from, int64_t windows,
            int64_t channels) {
  ForIsa([=] {
    if (channels == 1) {
      for (int64_t i = 0; i < windows; ++i) to[i * to_stride] += from[i];
      return;
    }
    for (int64_t i = 0; i < windows; ++i) {
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) {
        to[i * to_stride + c] += from[i * channels + c];
      }
    }
  });
}

// The same where x is the maximum and none was found before: open[i] is 1
// until then, 0 after.
void SpreadToMaximum(const float* x, float* to, int64_t to_stride,
                     const float* out, const float* grad, float* open,
                     int64_t windows, int64_t channels) {
  ForIsa([=] {
    for (int64_t i = 0; i < windows; ++i) {
      const float* xs = x + i * to_stride;
      float* tos = to + i * to_stride;
      const int64_t at = i * channels;
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) {
        const float v = xs[c], o = out[at + c];
        const bool found = (v == o || (v != v && o != o)) && open[at + c] != 0;
        tos[c] += found ? grad[at + c] : 0.0f;
        open[at + c] = found ? 0.0f : open[at + c];
      }
    }
  });
}

struct PoolGradKernel {
  PoolShape shape;
  DType dtype;

  // Rows of the result: its gradient and, for a maximum, itself and what is
  // open. Planes in f32, unless they are: the gradient, for a maximum x too.
  static int64_t ScratchFloats(const PoolShape& shape, DType dtype) {
    const int64_t plane = shape.h.in * shape.InRow();
    const int64_t planes = dtype == DType::kF32 ? 0 : shape.max ? 2 : 1;
    return planes * plane + (shape.max ? 3 : 1) * shape.OutRow();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t plane = shape.h.in * shape.InRow();
    const int64_t grain =
        std::max<int64_t>(1, kMapGrain / std::max<int64_t>(1, plane));
    ForTasksWithScratch(stream.threads(), shape.planes, grain,
                        buffers.workspace, ScratchFloats(shape, dtype),
                        [&](int64_t begin, int64_t end, float* scratch) {
                          for (int64_t p = begin; p < end; ++p) {
                            RunPlane(buffers, p, plane, scratch);
                          }
                        });
  }

 private:
  void RunPlane(const Buffers& buffers, int64_t p, int64_t plane,
                float* scratch) const {
    enum { kX, kOut, kOutGrad };
    const int64_t row = shape.OutRow();
    float* out_grad = scratch;
    float* out = out_grad + row;
    float* open = out + row;
    float* planes = scratch + (shape.max ? 3 : 1) * row;
    float* x_grad = OutputBlock(dtype, buffers.outputs[0], p * plane, planes);
    const float* x = nullptr;
    if (shape.max) {
      x = LoadBlock(dtype, buffers.inputs[kX], p * plane, plane,
                    planes + plane);
    }
    std::fill_n(x_grad, plane, 0.0f);
    for (int64_t oh = 0; oh < shape.h.out; ++oh) {
      const int64_t at = (p * shape.h.out + oh) * row;
      const float* g =
          LoadBlock(dtype, buffers.inputs[kOutGrad], at, row, out_grad);
      if (shape.max) {
        const float* o = LoadBlock(dtype, buffers.inputs[kOut], at, row, out);
        std::fill_n(open, row, 1.0f);
        MaximumRow(oh, x, o, g, open, x_grad);
      } else {
        Divide(oh, g, out_grad);
        MeanRow(oh, out_grad, x_grad);
      }
    }
    StoreBlock(dtype, x_grad, buffers.outputs[0], p * plane, plane);
  }

  void MaximumRow(int64_t oh, const float* x, const float* out,
                  const float* grad, float* open, float* x_grad) const {
    const Range rows = shape.h.Window(oh);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      ForColumns([&](int64_t j, const Range& with) {
        const int64_t to = i * shape.InRow() + Position(j, with.begin);
        const int64_t from = with.begin * shape.channels;
        SpreadToMaximum(x + to, x_grad + to, shape.w.stride * shape.channels,
                        out + from, grad + from, open + from, with.size(),
                        shape.channels);
      });
    }
  }

  void MeanRow(int64_t oh, const float* grad, float* x_grad) const {
    const Range rows = shape.h.Window(oh);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      ForColumns([&](int64_t j, const Range& with) {
        Spread(x_grad + i * shape.InRow() + Position(j, with.begin),
               shape.w.stride * shape.channels,
               grad + with.begin * shape.channels, with.size(), shape.channels);
      });
    }
  }

  // body(j, windows) for each column j of a window.
  template <typename Body>
  void ForColumns(const Body& body) const {
    for (int64_t j = 0; j < shape.w.kernel; ++j) {
      const Range with = shape.w.WindowsWith(j);
      if (with.size() > 0) body(j, with);
    }
  }

  // Of element j of window o in a row.
  int64_t Position(int64_t j, int64_t o) const {
    return (o * shape.w.stride - shape.w.before + j) * shape.channels;
  }

  void Divide(int64_t oh, const float* grad, float* shares) const {
    for (int64_t ow = 0; ow < shape.w.out; ++ow) {
      const float divisor = shape.Divisor(oh, ow);
      for (int64_t c = 0; c < shape.channels; ++c) {
        const int64_t at = ow * shape.channels + c;
        shares[at] = grad[at] / divisor;
      }
    }
  }
};

}  // namespace

void RegisterCpuPoolGrad(KernelRegistry& registry) {
  Candidate candidate = MakeCandidate("planes", [](const BoundOp& op) {
    return PoolGradKernel{PoolShape(op), op.inputs()[0].dtype};
  });
  candidate.supports = HasOneLayout;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return std::max(1, op.context().threads) * int64_t{sizeof(float)} *
           PoolGradKernel::ScratchFloats(PoolShape(op), op.inputs()[0].dtype);
  };
  AddForSchema(registry, "pool2d_grad", candidate);
}

}  // namespace kernels
}  // namespace halftone
