// Binary arithmetic with broadcasting, and gradients of activations.
#include "kernels/common/settings.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

template <typename F>
struct BinaryKernel {
  Operand x, y;
  DType out;
  int64_t elements;

  void operator()(const Buffers& buffers, Launcher& launch) const {
    MapBinary(launch, x, buffers.inputs[0], y, buffers.inputs[1], out,
              buffers.outputs[0], elements, F());
  }
};

template <typename F>
Candidate MakeBinary() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    const TensorDesc& out = op.Output("Out");
    const auto strides = BinaryStrides(op);
    return BinaryKernel<F>{Operand(op.Input("X").dtype, out, strides.first),
                           Operand(op.Input("Y").dtype, out, strides.second),
                           out.dtype, out.elements()};
  });
  candidate.supports = [](const BoundOp& op) {
    const auto strides = BinaryStrides(op);
    return Operand::Fits(op.Output("Out"), strides.first) &&
           Operand::Fits(op.Output("Out"), strides.second);
  };
  return candidate;
}

// Both operands have the output's dims.
template <typename F>
Candidate MakeGrad() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    return [x = op.inputs()[0].dtype, y = op.inputs()[1].dtype,
            out = op.outputs()[0].dtype, n = op.outputs()[0].elements()](
               const Buffers& buffers, Launcher& launch) {
      MapBinary(launch, x, buffers.inputs[0], y, buffers.inputs[1], out,
                buffers.outputs[0], n, F());
    };
  });
  candidate.supports = HasOneLayout;
  return candidate;
}

}  // namespace

void RegisterCudaBinary(KernelRegistry& registry) {
  ForEachBinary([&](absl::string_view op, auto functor) {
    AddForCuda(registry, op, MakeBinary<decltype(functor)>());
  });
  ForEachActivationGrad([&](absl::string_view op, auto functor) {
    AddForCuda(registry, op, MakeGrad<decltype(functor)>());
  });
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
