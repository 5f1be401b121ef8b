// Element-wise ops of two operands of one shape: gradients.
#include "kernels/common/elementwise_functors.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

template <typename Listed>
Candidate OfOneShape(const Listed& functor) {
  Candidate candidate = CudaCandidate("vector", [functor](const BoundOp& op) {
    return [f = functor.Make(op), x = op.inputs()[0].dtype,
            y = op.inputs()[1].dtype, out = op.outputs()[0].dtype,
            n = op.outputs()[0].elements()](const Buffers& buffers,
                                            Launcher& launch) {
      MapBinary(launch, x, buffers.inputs[0], y, buffers.inputs[1], out,
                buffers.outputs[0], n, f);
    };
  });
  candidate.supports = [functor](const BoundOp& op) {
    return functor.Computes(op) && HasOneLayout(op);
  };
  return candidate;
}

}  // namespace

void RegisterCudaGradients(KernelRegistry& registry) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands == Operands::kTwoOfOneShape) {
      AddForSchema(registry, functor.op, OfOneShape(functor));
    }
  });
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
