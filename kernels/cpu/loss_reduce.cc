// Reductions and broadcast_like, their gradient.
#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"

namespace halftone {
namespace kernels {
namespace {

Reduction PlanOf(const BoundOp& op, bool mean) {
  const TensorDesc& x = op.Input("X");
  return Reduction(x, op.Output("Out"), ReducedAxes(op, x.rank()), mean);
}

Candidate MakeReduce(bool mean) {
  Candidate candidate = MakeCandidate("runs", [mean](const BoundOp& op) {
    return [plan = PlanOf(op, mean)](const Buffers& buffers,
                                     runtime::Stream& stream) {
      plan.Run(buffers.inputs[0], buffers.outputs[0], buffers.workspace,
               stream.threads());
    };
  });
  candidate.workspace_bytes = [mean](const BoundOp& op) {
    return PlanOf(op, mean).workspace_bytes();
  };
  return candidate;
}

struct BroadcastKernel {
  Operand x;
  DType out;
  int64_t elements;
  float divisor;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    MapUnary(x, buffers.inputs[0], out, buffers.outputs[0], elements,
             stream.threads(), [d = divisor](float v) { return v / d; });
  }
};

BroadcastKernel MakeBroadcast(const BoundOp& op) {
  const TensorDesc& out = op.Output("Out");
  const BroadcastLike like = BroadcastLikeOf(op);
  return {Operand(op.Input("X").dtype, out, like.strides), out.dtype,
          out.elements(), like.divisor};
}

}  // namespace

void RegisterCpuReduce(KernelRegistry& registry) {
  AddForSchema(registry, "mean", MakeReduce(true));
  AddForSchema(registry, "reduce_mean", MakeReduce(true));
  AddForSchema(registry, "reduce_sum", MakeReduce(false));
  AddForSchema(registry, "broadcast_like",
               MakeCandidate("blocks", MakeBroadcast));
}

}  // namespace kernels
}  // namespace halftone
