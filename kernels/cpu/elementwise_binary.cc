// Binary arithmetic with broadcasting, and gradients of activations.
#include "kernels/common/shapes.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/map.h"

namespace halftone {
namespace kernels {
namespace {

template <typename F>
struct BinaryKernel {
  Operand x, y;
  DType out;
  int64_t elements;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    MapBinary(x, buffers.inputs[0], y, buffers.inputs[1], out,
              buffers.outputs[0], elements, stream.threads(), F());
  }
};

template <typename F>
BinaryKernel<F> MakeBinary(const BoundOp& op) {
  const TensorDesc& out = op.Output("Out");
  const auto strides = BinaryStrides(op);
  return {Operand(op.Input("X").dtype, out, strides.first),
          Operand(op.Input("Y").dtype, out, strides.second), out.dtype,
          out.elements()};
}

// Both operands have the output's dims.
template <typename F>
BinaryKernel<F> MakeGrad(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  return {Operand(op.inputs()[0], out), Operand(op.inputs()[1], out), out.dtype,
          out.elements()};
}

}  // namespace

void RegisterCpuBinary(KernelRegistry& registry) {
  ForEachBinary([&](absl::string_view op, auto functor) {
    AddForSchema(registry, op,
                 MakeCandidate("blocks", MakeBinary<decltype(functor)>));
  });
  ForEachActivationGrad([&](absl::string_view op, auto functor) {
    AddForSchema(registry, op,
                 MakeCandidate("blocks", MakeGrad<decltype(functor)>));
  });
}

}  // namespace kernels
}  // namespace halftone
