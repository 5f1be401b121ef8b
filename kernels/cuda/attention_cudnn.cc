#include "kernels/cuda/attention_cudnn.h"

#include <utility>
#include <vector>

#include "graph/base/layout.h"
#include "kernels/common/attention.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Kind = CudnnNode::Kind;

// [batch, length, heads, width] as [batch, heads, length, width]; LogSumExp,
// [batch, heads, length], with a dim of 1.
CudnnTensor HeadsFirst(const TensorDesc& desc) {
  const auto& d = desc.dims;
  if (desc.rank() == 3) {
    return {desc.dtype, {d[0], d[1], d[2], 1}, {d[1] * d[2], d[2], 1, 1}};
  }
  return {desc.dtype,
          {d[0], d[2], d[1], d[3]},
          {d[1] * d[2] * d[3], d[3], d[2] * d[3], 1}};
}

int Add(const TensorDesc& desc, int position, bool output, BoundGraph* to) {
  to->sources.push_back({position, output});
  to->graph.tensors.push_back(HeadsFirst(desc));
  return static_cast<int>(to->graph.tensors.size()) - 1;
}

}  // namespace

BoundGraph AttentionGraph(const BoundOp& op) {
  const AttentionOp attention = AttentionOp::Of(op);
  const bool gradient = attention.out_grad >= 0;
  std::vector<int> inputs = {0, 1, 2};
  if (gradient) {
    inputs.insert(inputs.end(),
                  {attention.out, attention.out_grad, attention.log_sum_exp});
  }
  BoundGraph bound;
  CudnnNode node;
  node.kind = gradient ? Kind::kAttentionGrad : Kind::kAttention;
  node.causal = attention.shape.causal;
  node.scale = attention.shape.scale;
  for (int i : inputs) {
    node.inputs.push_back(Add(op.inputs()[i], i, false, &bound));
  }
  for (int i = 0; i < static_cast<int>(op.outputs().size()); ++i) {
    node.outputs.push_back(Add(op.outputs()[i], i, true, &bound));
  }
  bound.graph.nodes.push_back(std::move(node));
  return bound;
}

bool CudnnTakesAttention(const BoundOp& op) {
  const AttentionOp attention = AttentionOp::Of(op);
  return IsLow(attention.dtype) && attention.mask < 0 && !attention.drops();
}

void RegisterCudnnAttention(KernelRegistry& registry,
                            const std::shared_ptr<CudnnCache>& cache) {
  Candidate candidate = CudnnCandidate(cache, AttentionGraph, true);
  candidate.supports = [any = candidate.supports](const BoundOp& op) {
    return CudnnTakesAttention(op) && any(op);
  };
  for (const char* op :
       {"scaled_dot_product_attention", "scaled_dot_product_attention_infer",
        "scaled_dot_product_attention_grad"}) {
    for (DType dtype : {DType::kF16, DType::kBF16}) {
      registry.Add(op, {dtype, DType::kInvalid}, Layout::kRowMajor, candidate);
    }
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
