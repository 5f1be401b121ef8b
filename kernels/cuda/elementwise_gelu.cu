// gelu and its gradient.
#include "kernels/common/gelu_settings.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

Candidate MakeGelu() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    return [tanh = IsTanh(op), x = op.Input("X").dtype,
            out = op.outputs()[0].dtype, n = op.outputs()[0].elements()](
               const Buffers& buffers, Launcher& launch) {
      WithGelu(tanh, [&](auto gelu, auto) {
        MapUnary(launch, x, buffers.inputs[0], out, buffers.outputs[0], n,
                 gelu);
      });
    };
  });
  candidate.supports = HasOneLayout;
  return candidate;
}

Candidate MakeGeluGrad() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    return [tanh = IsTanh(op), x = op.Input("X").dtype,
            grad = op.Input("OutGrad").dtype, out = op.outputs()[0].dtype,
            n = op.outputs()[0].elements()](const Buffers& buffers,
                                            Launcher& launch) {
      WithGelu(tanh, [&](auto, auto gelu_grad) {
        MapBinary(launch, x, buffers.inputs[0], grad, buffers.inputs[1], out,
                  buffers.outputs[0], n, gelu_grad);
      });
    };
  });
  candidate.supports = HasOneLayout;
  return candidate;
}

}  // namespace

void RegisterCudaGelu(KernelRegistry& registry) {
  AddForCuda(registry, "gelu", MakeGelu());
  AddForCuda(registry, "gelu_grad", MakeGeluGrad());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
