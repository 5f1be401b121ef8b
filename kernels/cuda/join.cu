// Joins of tensors and cuts into several: copies of rows, in units of up to 16
// bytes.
#include "kernels/common/join.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/shape.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Rows of `width`; in bytes, in a kernel in units.
struct Rows {
  const char* from;
  char* to;
  int64_t rows, width, from_stride, to_stride;
};

template <typename T>
struct RowUnits {
  const T* from;
  T* to;
  Divider width;
  int64_t total, from_stride, to_stride;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    RowsKernel(const __grid_constant__ RowUnits<T> rows) {
  constexpr int kUnits = 4;
  T value[kUnits];
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * (kThreads * kUnits) + threadIdx.x;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= rows.total) continue;
    const int64_t row = rows.width.Divide(i);
    const int64_t at = row * rows.from_stride + i - row * rows.width.divisor();
    value[u] = LoadAs<T>(rows.from, at * int64_t{sizeof(T)});
  }
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= rows.total) continue;
    const int64_t row = rows.width.Divide(i);
    const int64_t at = row * rows.to_stride + i - row * rows.width.divisor();
    StoreAs(rows.to, at * int64_t{sizeof(T)}, value[u]);
  }
}

void LaunchRows(Launcher& launch, const Rows& rows) {
  if (rows.rows == 0 || rows.width == 0) return;
  const int64_t unit =
      CommonUnit({Address(rows.from), Address(rows.to), rows.width,
                  rows.from_stride, rows.to_stride});
  WithUnit(unit, [&](auto zero) {
    using T = decltype(zero);
    RowUnits<T> units;
    units.from = reinterpret_cast<const T*>(rows.from);
    units.to = reinterpret_cast<T*>(rows.to);
    units.width = Divider(rows.width / unit);
    units.total = rows.rows * (rows.width / unit);
    units.from_stride = rows.from_stride / unit;
    units.to_stride = rows.to_stride / unit;
    launch(RowsKernel<T>, CeilDiv(units.total, 4 * kThreads), kThreads, units);
  });
}

auto MakeJoin(const BoundOp& op) {
  return [join = JoinOf(op, false)](const Buffers& buffers, Launcher& launch) {
    char* to = static_cast<char*>(buffers.outputs[0]);
    for (size_t i = 0; i < join.parts.size(); ++i) {
      const int64_t part = join.parts[i];
      LaunchRows(launch, {static_cast<const char*>(buffers.inputs[i]), to,
                          join.outer, part, part, join.row});
      to += part;
    }
  };
}

auto MakeCut(const BoundOp& op) {
  return [join = JoinOf(op, true)](const Buffers& buffers, Launcher& launch) {
    const char* from = static_cast<const char*>(buffers.inputs[0]);
    for (size_t i = 0; i < join.parts.size(); ++i) {
      const int64_t part = join.parts[i];
      LaunchRows(launch, {from, static_cast<char*>(buffers.outputs[i]),
                          join.outer, part, join.row, part});
      from += part;
    }
  };
}

}  // namespace

void RegisterCudaJoin(KernelRegistry& registry) {
  for (const char* op : {"concat", "stack"}) {
    AddForSchema(registry, op, CudaCandidate("units", MakeJoin));
  }
  for (const char* op : {"concat_grad", "split", "unstack"}) {
    AddForSchema(registry, op, CudaCandidate("units", MakeCut));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
