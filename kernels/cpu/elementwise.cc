// Element-wise ops of one operand. Of two: elementwise_binary.cc.
#include "kernels/cpu/elementwise.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cpu/low_table.h"
#include "kernels/cpu/map.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

template <typename F>
struct Unary {
  Operand x;
  DType dtype;
  int64_t elements;
  F f;
  LowTable table;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const void* from = buffers.inputs[0];
    void* to = buffers.outputs[0];
    if (table != nullptr) {
      return LookUp(table, from, to, elements, stream.threads());
    }
    MapUnary(x, from, dtype, to, elements, stream.threads(), f);
  }
};

template <typename F>
Unary<F> MakeUnary(const BoundOp& op, F f) {
  const TensorDesc& out = op.outputs()[0];
  Unary<F> kernel{Operand(op.inputs()[0], out), out.dtype, out.elements(), f};
  kernel.table =
      MakeLowTable<uint16_t>(kernel.x, out.dtype, kernel.elements, f);
  return kernel;
}

}  // namespace

void RegisterCpuElementwise(KernelRegistry& registry) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands == Operands::kOne) {
      Candidate candidate =
          MakeCandidate("blocks", [functor](const BoundOp& op) {
            return MakeUnary(op, functor.Make(op));
          });
      candidate.supports = functor.chosen;
      AddForSchema(registry, functor.op, candidate);
    }
  });
  RegisterCpuBinary(registry);
  RegisterCpuCast(registry);
  RegisterCpuSum(registry);
}

}  // namespace kernels
}  // namespace halftone
