// Ops that read one tensor axis by axis: a thread for each unit of up to 16
// bytes that stay together.
#include <algorithm>
#include <cstring>

#include "kernels/common/moves.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/shape.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// A Move, innermost axis last; strides in units.
struct MoveAxes {
  static constexpr int kMost = 8;
  int32_t count = 0;
  AxisRead axes[kMost];
  Divider extents[kMost];

  // Where output unit i comes from; -1: it is filled.
  HT_DEVICE int64_t OffsetOf(int64_t i) const {
    int64_t offset = 0;
#pragma unroll 1
    for (int k = count - 1; k >= 0; --k) {
      const int64_t rest = extents[k].Divide(i);
      const int64_t at = axes[k].At(i - rest * extents[k].divisor());
      if (at < 0) return -1;
      offset += at * axes[k].stride;
      i = rest;
    }
    return offset;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    MoveKernel(const __grid_constant__ MoveAxes move, const T* from, T fill,
               T* to, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t offset = move.OffsetOf(i);
  StoreAs(to, i * int64_t{sizeof(T)},
          offset < 0 ? fill : LoadAs<T>(from, offset * int64_t{sizeof(T)}));
}

bool IsCopied(const AxisRead& axis) {
  return axis.extent == axis.size && axis.before == 0 && axis.spread == 1 &&
         axis.start == 0 && axis.step == 1 && axis.stride == 1;
}

// `unit`: elements that stay together.
MoveAxes InUnits(const Move& move, int64_t unit) {
  MoveAxes result;
  for (const AxisRead& axis : move.axes) result.axes[result.count++] = axis;
  if (unit > 1) {
    AxisRead& last = result.axes[result.count - 1];
    last.extent /= unit;
    last.size /= unit;
    for (int k = 0; k + 1 < result.count; ++k) result.axes[k].stride /= unit;
  }
  for (int k = 0; k < result.count; ++k) {
    result.extents[k] = Divider(result.axes[k].extent);
  }
  return result;
}

// The most bytes in which all rows can be moved.
int64_t UnitOf(const Move& move, const void* from, const void* to) {
  int64_t unit = move.size;
  const AxisRead& last = move.axes.back();
  if (!IsCopied(last)) return unit;
  int64_t bits = last.extent;
  for (size_t k = 0; k + 1 < move.axes.size(); ++k) {
    bits |= move.axes[k].stride;
  }
  return std::max(unit,
                  CommonUnit({Address(from), Address(to), bits * move.size}));
}

auto MakeMove(const BoundOp& op) {
  const Move move = MoveOf(op);
  return [move, n = op.outputs()[0].elements()](const Buffers& buffers,
                                                Launcher& launch) {
    if (n == 0) return;
    const int64_t bytes = UnitOf(move, buffers.inputs[0], buffers.outputs[0]);
    const int64_t unit = bytes / move.size;
    WithUnit(bytes, [&](auto zero) {
      using T = decltype(zero);
      T fill;
      for (int64_t k = 0; k < unit; ++k) {
        std::memcpy(reinterpret_cast<char*>(&fill) + k * move.size, &move.fill,
                    move.size);
      }
      launch(MoveKernel<T>, CeilDiv(n / unit, kThreads), kThreads,
             InUnits(move, unit), static_cast<const T*>(buffers.inputs[0]),
             fill, static_cast<T*>(buffers.outputs[0]), n / unit);
    });
  };
}

// ---- pad3d_grad: a thread for each element of XGrad, which looks for where it
// went: inside, and wherever the border has it.

struct PadAxes {
  AxisRead axes[5];
  Divider sizes[5];
};

// visit(index) for each index of the padded axis that was read from `at`.
template <typename Visit>
HT_DEVICE void ForEachCopy(const AxisRead& axis, int64_t at,
                           const Visit& visit) {
  for (int64_t i = 0; i < axis.before; ++i) {
    if (axis.At(i) == at) visit(i);
  }
  visit(axis.before + at);
  for (int64_t i = axis.before + axis.size; i < axis.extent; ++i) {
    if (axis.At(i) == at) visit(i);
  }
}

__global__ void __launch_bounds__(kThreads)
    PadGradKernel(const __grid_constant__ PadAxes pad, DType dtype,
                  const void* grad, void* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  int64_t at[5];
  int64_t rest = i;
  for (int k = 4; k > 0; --k) {
    const int64_t next = pad.sizes[k].Divide(rest);
    at[k] = rest - next * pad.sizes[k].divisor();
    rest = next;
  }
  const int64_t image = rest * pad.axes[1].extent + at[1];
  float sum = 0;
  ForEachCopy(pad.axes[2], at[2], [&](int64_t d) {
    ForEachCopy(pad.axes[3], at[3], [&](int64_t h) {
      const int64_t row =
          (image * pad.axes[2].extent + d) * pad.axes[3].extent + h;
      ForEachCopy(pad.axes[4], at[4], [&](int64_t w) {
        sum += LoadOne(dtype, grad, row * pad.axes[4].extent + w);
      });
    });
  });
  StoreOne(dtype, out, i, sum);
}

auto MakePadGrad(const BoundOp& op) {
  const TensorDesc& out = op.Output("XGrad");
  PadAxes pad;
  const auto axes = PaddedAxes(op, out, op.Input("OutGrad"));
  for (int k = 0; k < 5; ++k) {
    pad.axes[k] = axes[k];
    pad.sizes[k] = Divider(std::max<int64_t>(1, axes[k].size));
  }
  return [pad, dtype = out.dtype, n = out.elements()](const Buffers& buffers,
                                                      Launcher& launch) {
    launch(PadGradKernel, CeilDiv(n, kThreads), kThreads, pad, dtype,
           buffers.inputs[1], buffers.outputs[0], n);
  };
}

}  // namespace

void RegisterCudaMove(KernelRegistry& registry) {
  Candidate move = CudaCandidate("units", MakeMove);
  move.supports = [](const BoundOp& op) {
    return MoveOf(op).axes.size() <= MoveAxes::kMost;
  };
  for (const char* op : kMoves) AddForSchema(registry, op, move);
  AddForSchema(registry, "pad3d_grad", CudaCandidate("elements", MakePadGrad));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
