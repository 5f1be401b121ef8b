// Element-wise ops of two operands, with broadcasting.
#include "kernels/common/elementwise_functors.h"
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
  F functor;

  void operator()(const Buffers& buffers, Launcher& launch) const {
    MapBinary(launch, x, buffers.inputs[0], y, buffers.inputs[1], out,
              buffers.outputs[0], elements, functor);
  }
};

template <typename Listed>
Candidate Broadcasting(const Listed& functor) {
  Candidate candidate = CudaCandidate("vector", [functor](const BoundOp& op) {
    const TensorDesc& out = op.Output("Out");
    const auto strides = BinaryStrides(op);
    return BinaryKernel<typename Listed::Functor>{
        Operand(op.inputs()[0].dtype, out, strides.first),
        Operand(op.inputs()[1].dtype, out, strides.second), out.dtype,
        out.elements(), functor.Make(op)};
  });
  candidate.supports = [functor](const BoundOp& op) {
    const auto strides = BinaryStrides(op);
    return functor.Computes(op) &&
           Operand::Fits(op.Output("Out"), strides.first) &&
           Operand::Fits(op.Output("Out"), strides.second);
  };
  return candidate;
}

}  // namespace

void RegisterCudaBinary(KernelRegistry& registry) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands == Operands::kTwo) {
      AddForSchema(registry, functor.op, Broadcasting(functor));
    }
  });
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
