// gelu and its gradient.
#include "kernels/common/gelu_settings.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/map.h"

namespace halftone {
namespace kernels {
namespace {

auto MakeGeluGrad(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  return [f = functors::GeluGradOp{IsTanh(op)}, x = Operand(op.Input("X"), out),
          grad = Operand(op.Input("OutGrad"), out), dtype = out.dtype,
          n = out.elements()](const Buffers& buffers, runtime::Stream& stream) {
    MapBinary(x, buffers.inputs[0], grad, buffers.inputs[1], dtype,
              buffers.outputs[0], n, stream.threads(), f);
  };
}

}  // namespace

void RegisterCpuGelu(KernelRegistry& registry) {
  AddForSchema(registry, "gelu",
               MakeCandidate("blocks", UnaryKernel([](const BoundOp& op) {
                               return functors::GeluOp{IsTanh(op)};
                             })));
  AddForSchema(registry, "gelu_grad", MakeCandidate("blocks", MakeGeluGrad));
}

}  // namespace kernels
}  // namespace halftone
