// gelu and its gradient.
#include "kernels/common/gelu_settings.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

Candidate MakeGeluGrad() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    return [f = functors::GeluGradOp{IsTanh(op)}, x = op.Input("X").dtype,
            grad = op.Input("OutGrad").dtype, out = op.outputs()[0].dtype,
            n = op.outputs()[0].elements()](const Buffers& buffers,
                                            Launcher& launch) {
      MapBinary(launch, x, buffers.inputs[0], grad, buffers.inputs[1], out,
                buffers.outputs[0], n, f);
    };
  });
  candidate.supports = HasOneLayout;
  return candidate;
}

}  // namespace

void RegisterCudaGelu(KernelRegistry& registry) {
  AddForCuda(registry, "gelu", UnaryCandidate([](const BoundOp& op) {
               return functors::GeluOp{IsTanh(op)};
             }));
  AddForCuda(registry, "gelu_grad", MakeGeluGrad());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
