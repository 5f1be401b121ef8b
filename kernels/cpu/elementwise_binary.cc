// Element-wise ops of two operands, with broadcasting or without.
#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/common/shapes.h"
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
  F functor;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    MapBinary(x, buffers.inputs[0], y, buffers.inputs[1], out,
              buffers.outputs[0], elements, stream.threads(), functor);
  }
};

template <typename F>
BinaryKernel<F> MakeBroadcasting(const BoundOp& op, F functor) {
  const TensorDesc& out = op.Output("Out");
  const auto strides = BinaryStrides(op);
  return {Operand(op.inputs()[0].dtype, out, strides.first),
          Operand(op.inputs()[1].dtype, out, strides.second), out.dtype,
          out.elements(), functor};
}

template <typename F>
BinaryKernel<F> MakeOfOneShape(const BoundOp& op, F functor) {
  const TensorDesc& out = op.outputs()[0];
  return {Operand(op.inputs()[0], out), Operand(op.inputs()[1], out), out.dtype,
          out.elements(), functor};
}

}  // namespace

void RegisterCpuBinary(KernelRegistry& registry) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands != Operands::kOne) {
      Candidate candidate =
          MakeCandidate("blocks", [functor](const BoundOp& op) {
            if constexpr (functor.operands == Operands::kTwo) {
              return MakeBroadcasting(op, functor.Make(op));
            } else {
              return MakeOfOneShape(op, functor.Make(op));
            }
          });
      candidate.supports = functor.chosen;
      AddForSchema(registry, functor.op, candidate);
    }
  });
}

}  // namespace kernels
}  // namespace halftone
