// gelu and its gradient.
#include "kernels/common/gelu_settings.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/map.h"

namespace halftone {
namespace kernels {
namespace {

auto MakeGelu(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  return [tanh = IsTanh(op), x = Operand(op.Input("X"), out), dtype = out.dtype,
          n = out.elements()](const Buffers& buffers, runtime::Stream& stream) {
    WithGelu(tanh, [&](auto gelu, auto) {
      MapUnary(x, buffers.inputs[0], dtype, buffers.outputs[0], n,
               stream.threads(), gelu);
    });
  };
}

auto MakeGeluGrad(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  return [tanh = IsTanh(op), x = Operand(op.Input("X"), out),
          grad = Operand(op.Input("OutGrad"), out), dtype = out.dtype,
          n = out.elements()](const Buffers& buffers, runtime::Stream& stream) {
    WithGelu(tanh, [&](auto, auto gelu_grad) {
      MapBinary(x, buffers.inputs[0], grad, buffers.inputs[1], dtype,
                buffers.outputs[0], n, stream.threads(), gelu_grad);
    });
  };
}

}  // namespace

void RegisterCpuGelu(KernelRegistry& registry) {
  AddForSchema(registry, "gelu", MakeCandidate("blocks", MakeGelu));
  AddForSchema(registry, "gelu_grad", MakeCandidate("blocks", MakeGeluGrad));
}

}  // namespace kernels
}  // namespace halftone
