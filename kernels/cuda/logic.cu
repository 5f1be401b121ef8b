// Comparisons, logical ops and the choice between two tensors: an element for
// each thread, whatever the types and the broadcasting.
#include <functional>
#include <utility>

#include "kernels/common/shapes.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/shape.h"
#include "kernels/functors/cast.h"
#include "kernels/functors/logic.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// `y` may be null: zeros.
template <typename T, typename F>
__global__ void __launch_bounds__(kThreads)
    PredicateKernel(const __grid_constant__ Loops x_loops,
                    const __grid_constant__ Loops y_loops, const T* x,
                    const T* y, bool* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const auto a = functors::Widen(x[x_loops.OffsetOf(i)]);
  auto b = a;
  b = 0;
  if (y != nullptr) b = functors::Widen(y[y_loops.OffsetOf(i)]);
  out[i] = F()(a, b);
}

using Run = std::function<void(const Buffers&, Launcher&)>;

struct Predicate {
  Extents x, y;  // strides per dim of Out
  int first;     // the input that is the functor's first operand
  bool negates;  // the second is 0

  Predicate(const BoundOp& op, bool swaps)
      : first(swaps ? 1 : 0), negates(op.inputs().size() == 1) {
    if (negates) {
      x = StridesOf(op.Output("Out"));
      y = Extents(op.Output("Out").rank(), 0);
      return;
    }
    std::tie(x, y) = BinaryStrides(op);
    if (swaps) std::swap(x, y);
  }
};

template <typename F>
Candidate MakePredicate(bool swaps) {
  Candidate candidate = CudaCandidate("elements", [swaps](const BoundOp& op) {
    const TensorDesc& out = op.Output("Out");
    const Predicate predicate(op, swaps);
    const Loops x(MakeNest(out, predicate.x)), y(MakeNest(out, predicate.y));
    Run run;
    DispatchType(AnyTypes(), op.Input("X").dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      run = [x, y, first = predicate.first, negates = predicate.negates,
             n = out.elements()](const Buffers& b, Launcher& launch) {
        launch(PredicateKernel<T, F>, CeilDiv(n, kThreads), kThreads, x, y,
               static_cast<const T*>(b.inputs[first]),
               negates ? static_cast<const T*>(nullptr)
                       : static_cast<const T*>(b.inputs[1 - first]),
               static_cast<bool*>(b.outputs[0]), n);
      };
    });
    return run;
  });
  candidate.supports = [swaps](const BoundOp& op) {
    const TensorDesc& out = op.Output("Out");
    const Predicate predicate(op, swaps);
    return Loops::Fits(MakeNest(out, predicate.x)) &&
           Loops::Fits(MakeNest(out, predicate.y));
  };
  return candidate;
}

// ---- where.

template <typename T>
__global__ void __launch_bounds__(kThreads)
    WhereKernel(const __grid_constant__ Loops by, const bool* condition,
                const __grid_constant__ Loops x_loops, const T* x,
                const __grid_constant__ Loops y_loops, const T* y, T* out,
                int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  out[i] = condition[by.OffsetOf(i)] ? x[x_loops.OffsetOf(i)]
                                     : y[y_loops.OffsetOf(i)];
}

Nest OperandNest(const BoundOp& op, int k) {
  const TensorDesc& out = op.Output("Out");
  const TensorDesc& in = op.inputs()[k];
  return MakeNest(out, BroadcastStrides(in, out, out.rank() - in.rank()));
}

Candidate MakeWhere() {
  Candidate candidate = CudaCandidate("elements", [](const BoundOp& op) {
    const Loops by(OperandNest(op, 0)), x(OperandNest(op, 1)),
        y(OperandNest(op, 2));
    Run run;
    WithElement(SizeOf(op.Output("Out").dtype), [&](auto zero) {
      using T = decltype(zero);
      run = [by, x, y, n = op.Output("Out").elements()](const Buffers& b,
                                                        Launcher& launch) {
        launch(WhereKernel<T>, CeilDiv(n, kThreads), kThreads, by,
               static_cast<const bool*>(b.inputs[0]), x,
               static_cast<const T*>(b.inputs[1]), y,
               static_cast<const T*>(b.inputs[2]),
               static_cast<T*>(b.outputs[0]), n);
      };
    });
    return run;
  });
  candidate.supports = [](const BoundOp& op) {
    return Loops::Fits(OperandNest(op, 0)) && Loops::Fits(OperandNest(op, 1)) &&
           Loops::Fits(OperandNest(op, 2));
  };
  return candidate;
}

}  // namespace

void RegisterCudaLogic(KernelRegistry& registry) {
  functors::ForEachPredicate([&](const char* op, auto functor, bool swaps) {
    AddForSchema(registry, op, MakePredicate<decltype(functor)>(swaps));
  });
  AddForSchema(registry, "logical_not",
               MakePredicate<functors::EqualOp>(false));
  AddForSchema(registry, "where", MakeWhere());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
