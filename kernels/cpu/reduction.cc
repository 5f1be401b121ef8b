// Reductions that are no sums.
#include "kernels/cpu/reduction.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/reduced.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/reduce.h"
#include "kernels/functors/reduction.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using Run = std::function<void(const Buffers&, runtime::Stream&)>;

// Integers, exactly. X in its own order; where each element goes.
template <typename T, typename F>
Run FoldIntegers(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const TensorDesc& out = op.Output("Out");
  Extents strides(x.rank(), 0);
  const std::vector<bool> reduced = ReducedAxes(op, x.rank());
  int64_t stride = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    if (reduced[i]) continue;
    strides[i] = stride;
    stride *= x.dims[i];
  }
  return [nest = MakeNest(x, strides), elements = x.elements(),
          outputs = out.elements()](const Buffers& buffers, runtime::Stream&) {
    const T* from = static_cast<const T*>(buffers.inputs[0]);
    T* to = static_cast<T*>(buffers.outputs[0]);
    const F f;
    std::fill_n(to, outputs, F::template None<T>());
    if (elements == 0) return;
    NestWalk walk(nest, 0);
    for (int64_t i = 0; i < elements;) {
      const int64_t n = walk.row_left();
      const int64_t step = nest.rank() == 0 ? 0 : nest.strides.back();
      for (int64_t k = 0; k < n; ++k, ++i) {
        T& target = to[walk.offset() + k * step];
        target = f(target, from[i]);
      }
      walk.Advance(n);
    }
  };
}

Run FoldFloats(const BoundOp& op, const std::vector<bool>& axes,
               const Folding& folding) {
  return
      [plan = Reduction(op.Input("X"), op.Output("Out"), axes, false, folding)](
          const Buffers& buffers, runtime::Stream& stream) {
        plan.Run(buffers.inputs[0], buffers.outputs[0], buffers.workspace,
                 stream.threads());
      };
}

template <typename F>
Candidate MakeFold(Folding (*folding)()) {
  Candidate candidate = MakeCandidate("runs", [folding](const BoundOp& op) {
    const TensorDesc& x = op.Input("X");
    if (x.dtype == DType::kI32) return FoldIntegers<int32_t, F>(op);
    if (x.dtype == DType::kI64) return FoldIntegers<int64_t, F>(op);
    return FoldFloats(op, ReducedAxes(op, x.rank()), folding());
  });
  candidate.workspace_bytes = [folding](const BoundOp& op) {
    const TensorDesc& x = op.Input("X");
    if (!IsFloat(x.dtype)) return int64_t{0};
    return Reduction(x, op.Output("Out"), ReducedAxes(op, x.rank()), false,
                     folding())
        .workspace_bytes();
  };
  return candidate;
}

Candidate MakeNorm() {
  const auto folding = [](const BoundOp& op) {
    return Norms(static_cast<float>(op.Float("porder")));
  };
  Candidate candidate = MakeCandidate("runs", [folding](const BoundOp& op) {
    return FoldFloats(op, NormAxes(op), folding(op));
  });
  candidate.workspace_bytes = [folding](const BoundOp& op) {
    return Reduction(op.Input("X"), op.Output("Out"), NormAxes(op), false,
                     folding(op))
        .workspace_bytes();
  };
  return candidate;
}

}  // namespace

void RegisterCpuReduction(KernelRegistry& registry) {
  AddForSchema(registry, "reduce_max", MakeFold<functors::GreaterOf>(Greatest));
  AddForSchema(registry, "reduce_min", MakeFold<functors::LesserOf>(Least));
  AddForSchema(registry, "reduce_prod",
               MakeFold<functors::ProductOf>(Products));
  AddForSchema(registry, "p_norm", MakeNorm());
  RegisterCpuArg(registry);
  RegisterCpuScan(registry);
}

}  // namespace kernels
}  // namespace halftone
