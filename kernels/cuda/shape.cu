// Ops that move elements: reshapes, joins and cuts, in units of up to 16
// bytes. transpose and pad_channels have files of
// their own.
#include <vector>

#include "kernels/common/shapes.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/shape.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Rows of `width` to `to`; of each, [before, before + from_width) comes from
// `from`, the rest is 0. In bytes; in a kernel, in units.
struct Move {
  const char* from;
  char* to;
  int64_t rows, width, before, from_width, from_stride, to_stride;
};

template <typename T>
struct MoveUnits {
  const T* from;
  T* to;
  Divider width;
  int64_t total, before, from_width, from_stride, to_stride;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    MoveKernel(const __grid_constant__ MoveUnits<T> move) {
  constexpr int kUnits = 4;
  T value[kUnits];
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * (kThreads * kUnits) + threadIdx.x;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads;
    value[u] = T();
    if (i >= move.total) continue;
    const int64_t row = move.width.Divide(i);
    const int64_t at = i - row * move.width.divisor() - move.before;
    if (at >= 0 && at < move.from_width) {
      value[u] = LoadAs<T>(move.from,
                           (row * move.from_stride + at) * int64_t{sizeof(T)});
    }
  }
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= move.total) continue;
    const int64_t row = move.width.Divide(i);
    const int64_t at = row * move.to_stride + i - row * move.width.divisor();
    StoreAs(move.to, at * int64_t{sizeof(T)}, value[u]);
  }
}

void LaunchMove(Launcher& launch, const Move& move) {
  if (move.rows == 0 || move.width == 0) return;
  const int64_t unit =
      CommonUnit({Address(move.from), Address(move.to), move.width, move.before,
                  move.from_width, move.from_stride, move.to_stride});
  WithUnit(unit, [&](auto zero) {
    using T = decltype(zero);
    MoveUnits<T> units;
    units.from = reinterpret_cast<const T*>(move.from);
    units.to = reinterpret_cast<T*>(move.to);
    units.width = Divider(move.width / unit);
    units.total = move.rows * (move.width / unit);
    units.before = move.before / unit;
    units.from_width = move.from_width / unit;
    units.from_stride = move.from_stride / unit;
    units.to_stride = move.to_stride / unit;
    launch(MoveKernel<T>, CeilDiv(units.total, 4 * kThreads), kThreads, units);
  });
}

const char* In(const Buffers& buffers, size_t i) {
  return static_cast<const char*>(buffers.inputs[i]);
}
char* Out(const Buffers& buffers) {
  return static_cast<char*>(buffers.outputs[0]);
}

auto MakeReshape(const BoundOp& op) {
  return [bytes = op.outputs()[0].bytes()](const Buffers& buffers,
                                           Launcher& launch) {
    launch.Copy(buffers.outputs[0], buffers.inputs[0], bytes);
  };
}

auto MakeConcat(const BoundOp& op) {
  const int64_t out_row = AroundAxis(op.outputs()[0], op.Int("axis")).row();
  std::vector<Around> parts;
  for (const TensorDesc& x : op.inputs()) {
    parts.push_back(AroundAxis(x, op.Int("axis")));
  }
  return [out_row, parts](const Buffers& buffers, Launcher& launch) {
    char* to = Out(buffers);
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t row = parts[i].row();
      LaunchMove(launch, {In(buffers, i), to, parts[i].outer, row, 0, row, row,
                          out_row});
      to += row;
    }
  };
}

auto MakeConcatGrad(const BoundOp& op) {
  const int64_t out_row = AroundAxis(op.Input("OutGrad"), op.Int("axis")).row();
  std::vector<Around> parts;
  for (const TensorDesc& part : op.outputs()) {
    parts.push_back(AroundAxis(part, op.Int("axis")));
  }
  return [out_row, parts](const Buffers& buffers, Launcher& launch) {
    const char* from = In(buffers, 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t row = parts[i].row();
      LaunchMove(launch, {from, static_cast<char*>(buffers.outputs[i]),
                          parts[i].outer, row, 0, row, out_row, row});
      from += row;
    }
  };
}

auto MakeSlice(const BoundOp& op) {
  const int64_t axis = op.Int("axis");
  const Around in = AroundAxis(op.Input("X"), axis);
  const Around out = AroundAxis(op.Output("Out"), axis);
  return [in, out, start = SliceStart(op)](const Buffers& buffers,
                                           Launcher& launch) {
    LaunchMove(launch,
               {In(buffers, 0) + start * in.slice, Out(buffers), out.outer,
                out.row(), 0, out.row(), in.row(), out.row()});
  };
}

auto MakePadLike(const BoundOp& op) {
  const int64_t axis = op.Int("axis");
  const Around in = AroundAxis(op.Input("X"), axis);
  const Around out = AroundAxis(op.Output("Out"), axis);
  return [in, out, before = op.Int("start") * out.slice](const Buffers& buffers,
                                                         Launcher& launch) {
    LaunchMove(launch, {In(buffers, 0), Out(buffers), out.outer, out.row(),
                        before, in.row(), in.row(), out.row()});
  };
}

}  // namespace

void RegisterCudaShape(KernelRegistry& registry) {
  for (const char* op : {"reshape", "reshape_like", "flatten"}) {
    AddForSchema(registry, op, CudaCandidate("copy", MakeReshape));
  }
  AddForSchema(registry, "concat", CudaCandidate("units", MakeConcat));
  AddForSchema(registry, "concat_grad", CudaCandidate("units", MakeConcatGrad));
  AddForSchema(registry, "slice", CudaCandidate("units", MakeSlice));
  AddForSchema(registry, "pad_like", CudaCandidate("units", MakePadLike));
  RegisterCudaPadChannels(registry);
  RegisterCudaTranspose(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
