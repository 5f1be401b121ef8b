// Rows by number, their gradient, and rows that others replace: numbers are
// sorted by their digits, equal ones in their order, then each run of equal
// ones is added up in that order, a thread for each column. Nothing is added
// atomically: the bits are the same each time.
#include <functional>
#include <limits>

#include "kernels/common/lookup.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/sort_keys.h"
#include "kernels/functors/cast.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using IndexTypes = TypeList<int64_t, int32_t>;
using Run = std::function<void(const Buffers&, Launcher&)>;

template <typename T>
HT_DEVICE T Nothing() {
  if constexpr (functors::IsStorageFloat<T>::value ||
                std::is_floating_point<T>::value) {
    return functors::Cast<T>(functors::QuietNaN());
  } else {
    return T();
  }
}

// ---- Gathers: an element for each thread.

template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    GatherKernel(LookupShape shape, Divider inner, Divider count, const T* x,
                 const Index* index, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t row = inner.Divide(i);
  const int64_t outer = count.Divide(row);
  const int64_t slice = shape.SliceOf(index[row - outer * shape.count]);
  if (slice < 0) {
    out[i] = Nothing<T>();
  } else if (slice == shape.padding) {
    out[i] = functors::Cast<T>(0.0f);
  } else {
    out[i] =
        x[(outer * shape.size + slice) * shape.inner + i - row * shape.inner];
  }
}

Candidate MakeGather() {
  return CudaCandidate("elements", [](const BoundOp& op) {
    const LookupShape shape = LookupShapeOf(op);
    const int64_t n = op.Output("Out").elements();
    const Divider inner(n > 0 ? shape.inner : 1);
    const Divider count(n > 0 ? shape.count : 1);
    Run run;
    DispatchType(AnyTypes(), op.inputs()[0].dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.inputs()[1].dtype, [&](auto index_tag) {
        using T = typename decltype(tag)::type;
        using Index = typename decltype(index_tag)::type;
        run = [=](const Buffers& b, Launcher& launch) {
          launch(GatherKernel<T, Index>, CeilDiv(n, kThreads), kThreads, shape,
                 inner, count, static_cast<const T*>(b.inputs[0]),
                 static_cast<const Index*>(b.inputs[1]),
                 static_cast<T*>(b.outputs[0]), n);
        };
      });
    });
    return run;
  });
}

// ---- gather_grad.

// The slices that are named; `size` for what nobody gets.
template <typename Index>
__global__ void __launch_bounds__(kThreads)
    KeysKernel(LookupShape shape, const Index* index, Sorted to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= shape.count) return;
  const int64_t slice = shape.SliceOf(index[i]);
  const bool none = slice < 0 || slice == shape.padding;
  to.keys[i] = static_cast<int32_t>(none ? shape.size : slice);
  to.places[i] = static_cast<int32_t>(i);
}

// What a block has: a run of equal numbers, or nothing; an outer part; and of
// each thread a column, if there are so many.
struct RunBlock {
  KeyRun run;
  int64_t outer, column;

  HT_DEVICE RunBlock(const LookupShape& shape, const Sorted& sorted)
      : run(RunAt(sorted, shape.count, shape.size, blockIdx.x % shape.count)) {
    const int64_t rest = blockIdx.x / shape.count;
    const int64_t groups = CeilDiv(shape.inner, kThreads);
    outer = rest / groups;
    column = rest % groups * kThreads + threadIdx.x;
  }
  static int64_t Blocks(const LookupShape& shape) {
    return shape.outer * CeilDiv(shape.inner, kThreads) * shape.count;
  }
};

__global__ void __launch_bounds__(kThreads)
    AddRunsKernel(LookupShape shape, Sorted sorted, DType dtype,
                  const void* grad, void* out) {
  const RunBlock block(shape, sorted);
  if (block.run.empty() || block.column >= shape.inner) return;
  const int64_t row = block.outer * shape.count;
  float sum = 0;
  ForRun(
      sorted, block.run,
      [&](int32_t place) {
        return LoadRaw<1>(dtype, grad,
                          (row + place) * shape.inner + block.column);
      },
      [&](const Raw& raw) {
        float x[1];
        Unpack(dtype, raw, x);
        sum += x[0];
      });
  const int64_t slice = block.outer * shape.size + block.run.key;
  StoreOne(dtype, out, slice * shape.inner + block.column, sum);
}

SortPlan PlanOf(const LookupShape& shape) {
  return SortPlan(shape.count, shape.size);
}

template <typename Index>
Sorted SortIndex(const LookupShape& shape, const Index* index, void* workspace,
                 Launcher& launch) {
  const SortPlan plan = PlanOf(shape);
  launch(KeysKernel<Index>, plan.blocks, kThreads, shape, index,
         plan.Unsorted(workspace));
  return plan.Sort(workspace, launch);
}

void SortsNumbers(Candidate& candidate) {
  candidate.supports = [](const BoundOp& op) {
    const LookupShape shape = LookupShapeOf(op);
    return SortPlan::Supports(shape.count, shape.size);
  };
  candidate.workspace_bytes = [](const BoundOp& op) {
    return PlanOf(LookupShapeOf(op)).workspace_bytes();
  };
}

Candidate MakeGatherGrad() {
  Candidate candidate = CudaCandidate("sorted", [](const BoundOp& op) {
    const TensorDesc& out = op.Output("XGrad");
    Run run;
    DispatchType(IndexTypes(), op.Input("Index").dtype, [&](auto tag) {
      using Index = typename decltype(tag)::type;
      run = [shape = LookupShapeOf(op), dtype = out.dtype, bytes = out.bytes()](
                const Buffers& b, Launcher& launch) {
        launch.Zero(b.outputs[0], bytes);
        if (shape.count == 0) return;
        const Sorted sorted = SortIndex(
            shape, static_cast<const Index*>(b.inputs[1]), b.workspace, launch);
        launch(AddRunsKernel, RunBlock::Blocks(shape), kThreads, shape, sorted,
               dtype, b.inputs[2], b.outputs[0]);
      };
    });
    return run;
  });
  SortsNumbers(candidate);
  return candidate;
}

// ---- scatter.

// A slice becomes its last update, or the sum of all.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    WriteRunsKernel(LookupShape shape, Sorted sorted, bool overwrite,
                    const T* updates, T* out) {
  const RunBlock block(shape, sorted);
  if (block.run.empty() || block.column >= shape.inner) return;
  const int64_t row = block.outer * shape.count;
  const auto update = [&](int32_t place) {
    return updates[(row + place) * shape.inner + block.column];
  };
  KeyRun rest = block.run;
  rest.first = overwrite ? rest.end : rest.first + 1;
  T result = update(sorted.places[rest.first - 1]);
  if (!rest.empty()) {
    auto sum = functors::Widen(result);
    ForRun(sorted, rest, update, [&](T x) { sum = sum + functors::Widen(x); });
    result = functors::Cast<T>(sum);
  }
  const int64_t slice = block.outer * shape.size + block.run.key;
  out[slice * shape.inner + block.column] = result;
}

// Not in the lambda of MakeScatter: there nvcc does not find a T that Index has
// no part in.
template <typename T>
void WriteRuns(const LookupShape& shape, const Sorted& sorted, bool overwrite,
               const T* updates, T* out, Launcher& launch) {
  launch(WriteRunsKernel<T>, RunBlock::Blocks(shape), kThreads, shape, sorted,
         overwrite, updates, out);
}

Candidate MakeScatter() {
  Candidate candidate = CudaCandidate("sorted", [](const BoundOp& op) {
    const LookupShape shape = LookupShapeOf(op);
    const int64_t bytes = op.Output("Out").bytes();
    const bool overwrite = op.Bool("overwrite");
    Run run;
    DispatchType(AnyTypes(), op.Input("X").dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.Input("Ids").dtype, [&](auto index_tag) {
        using T = typename decltype(tag)::type;
        using Index = typename decltype(index_tag)::type;
        run = [=](const Buffers& b, Launcher& launch) {
          launch.Copy(b.outputs[0], b.inputs[0], bytes);
          if (shape.count == 0) return;
          const Sorted sorted =
              SortIndex(shape, static_cast<const Index*>(b.inputs[1]),
                        b.workspace, launch);
          WriteRuns(shape, sorted, overwrite,
                    static_cast<const T*>(b.inputs[2]),
                    static_cast<T*>(b.outputs[0]), launch);
        };
      });
    });
    return run;
  });
  SortsNumbers(candidate);
  return candidate;
}

// ---- take_along_axis and its gradient.

template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    TakeKernel(LookupShape shape, Divider inner, Divider count, const T* x,
               const Index* index, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t row = inner.Divide(i);
  const int64_t slice = shape.SliceOf(index[i]);
  const int64_t at = count.Divide(row) * shape.size + slice;
  out[i] =
      slice < 0 ? Nothing<T>() : x[at * shape.inner + i - row * shape.inner];
}

Candidate MakeTake() {
  return CudaCandidate("elements", [](const BoundOp& op) {
    const LookupShape shape = LookupShapeOf(op);
    const int64_t n = op.Output("Result").elements();
    const Divider inner(n > 0 ? shape.inner : 1);
    const Divider count(n > 0 ? shape.count : 1);
    Run run;
    DispatchType(AnyTypes(), op.Input("Input").dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.Input("Index").dtype, [&](auto index_tag) {
        using T = typename decltype(tag)::type;
        using Index = typename decltype(index_tag)::type;
        run = [=](const Buffers& b, Launcher& launch) {
          launch(TakeKernel<T, Index>, CeilDiv(n, kThreads), kThreads, shape,
                 inner, count, static_cast<const T*>(b.inputs[0]),
                 static_cast<const Index*>(b.inputs[1]),
                 static_cast<T*>(b.outputs[0]), n);
        };
      });
    });
    return run;
  });
}

// A thread adds up a column, in its order.
template <typename Index>
__global__ void __launch_bounds__(kThreads)
    AddColumnsKernel(LookupShape shape, Divider inner, DType dtype,
                     const Index* index, const void* grad, float* sums) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= shape.outer * shape.inner) return;
  const int64_t outer = inner.Divide(i);
  const int64_t column = i - outer * shape.inner;
  for (int64_t k = 0; k < shape.count; ++k) {
    const int64_t at = (outer * shape.count + k) * shape.inner + column;
    const int64_t slice = shape.SliceOf(index[at]);
    if (slice < 0) continue;
    sums[(outer * shape.size + slice) * shape.inner + column] +=
        LoadOne(dtype, grad, at);
  }
}

__global__ void __launch_bounds__(kThreads)
    RoundKernel(DType dtype, const float* sums, void* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) StoreOne(dtype, out, i, sums[i]);
}

// Workspace: sums in f32, where the gradient is not.
Candidate MakeTakeGrad() {
  Candidate candidate = CudaCandidate("columns", [](const BoundOp& op) {
    const LookupShape shape = LookupShapeOf(op);
    const int64_t columns = shape.outer * shape.inner;
    const int64_t n = op.Output("InputGrad").elements();
    const Divider inner(columns > 0 ? shape.inner : 1);
    const DType dtype = op.Output("InputGrad").dtype;
    Run run;
    DispatchType(IndexTypes(), op.Input("Index").dtype, [&](auto tag) {
      using Index = typename decltype(tag)::type;
      run = [=](const Buffers& b, Launcher& launch) {
        void* const sums = dtype == DType::kF32 ? b.outputs[0] : b.workspace;
        launch.Zero(sums, n * int64_t{sizeof(float)});
        launch(AddColumnsKernel<Index>, CeilDiv(columns, kThreads), kThreads,
               shape, inner, dtype, static_cast<const Index*>(b.inputs[1]),
               b.inputs[2], static_cast<float*>(sums));
        if (dtype == DType::kF32) return;
        launch(RoundKernel, CeilDiv(n, kThreads), kThreads, dtype,
               static_cast<const float*>(sums), b.outputs[0], n);
      };
    });
    return run;
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    const TensorDesc& out = op.Output("InputGrad");
    const bool own = out.dtype != DType::kF32;
    return own ? out.elements() * int64_t{sizeof(float)} : 0;
  };
  return candidate;
}

// ---- one_hot_v2.

template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    OneHotKernel(Divider depth, const Index* classes, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t row = depth.Divide(i);
  const bool hot = classes[row] == i - row * depth.divisor();
  out[i] = functors::Cast<T>(hot ? 1.0f : 0.0f);
}

Candidate MakeOneHot() {
  using OneHotTypes = TypeList<float, half, bfloat16, int32_t, int64_t>;
  return CudaCandidate("elements", [](const BoundOp& op) {
    const Divider depth(op.Int("depth"));
    const int64_t n = op.Output("Out").elements();
    Run run;
    DispatchType(OneHotTypes(), op.Output("Out").dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.Input("X").dtype, [&](auto index_tag) {
        using T = typename decltype(tag)::type;
        using Index = typename decltype(index_tag)::type;
        run = [=](const Buffers& b, Launcher& launch) {
          launch(OneHotKernel<T, Index>, CeilDiv(n, kThreads), kThreads, depth,
                 static_cast<const Index*>(b.inputs[0]),
                 static_cast<T*>(b.outputs[0]), n);
        };
      });
    });
    return run;
  });
}

}  // namespace

void RegisterCudaLookups(KernelRegistry& registry) {
  for (const char* op : {"lookup_table_v2", "gather", "index_select"}) {
    AddForSchema(registry, op, MakeGather());
  }
  AddForSchema(registry, "gather_grad", MakeGatherGrad());
  AddForSchema(registry, "scatter", MakeScatter());
  AddForSchema(registry, "take_along_axis", MakeTake());
  AddForSchema(registry, "take_along_axis_grad", MakeTakeGrad());
  AddForSchema(registry, "one_hot_v2", MakeOneHot());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
