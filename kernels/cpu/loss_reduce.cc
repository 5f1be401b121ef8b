// Reductions and broadcast_like, their gradient.
#include <vector>

#include "graph/ops/infer_helpers.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"

namespace halftone {
namespace kernels {
namespace {

// The axes of `rank` that the op's attributes name; the schema checked them.
std::vector<bool> AxesOf(const BoundOp& op, int rank) {
  if (op.schema().FindAttr("dim") < 0) return std::vector<bool>(rank, true);
  const bool all =
      op.schema().FindAttr("reduce_all") >= 0 && op.Bool("reduce_all");
  return *ops::ReducedAxes(op.Ints("dim"), all, rank);
}

Reduction PlanOf(const BoundOp& op, bool mean) {
  const TensorDesc& x = op.Input("X");
  return Reduction(x, op.Output("Out").dtype, AxesOf(op, x.rank()), mean);
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
  const TensorDesc& x = op.Input("X");
  const TensorDesc& out = op.Output("Out");
  const std::vector<bool> repeated = AxesOf(op, out.rank());
  const Extents own = StridesOf(x);
  Extents strides(out.rank(), 0);
  int next = 0;  // the dim of x that goes with the next dim of out
  for (int i = 0; i < out.rank(); ++i) {
    if (!repeated[i]) {
      strides[i] = own[next++];
    } else if (op.Bool("keep_dim")) {
      ++next;
    }
  }
  float divisor = 1.0f;
  if (op.Bool("mean") && x.elements() > 0 && out.elements() > 0) {
    divisor = static_cast<float>(out.elements() / x.elements());
  }
  return {Operand(x.dtype, out, strides), out.dtype, out.elements(), divisor};
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
