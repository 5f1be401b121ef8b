// The pattern elementwise_chain: all ops of a body on one block of elements
// before the next, so that what is between them stays in the first-level
// cache. Each op's result is rounded to the tensors' dtype, as if it had been
// stored: the bits are the body's.
#include <cstring>
#include <vector>

#include "graph/base/check.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/fusion.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace {

// Values in flight are arguments, then results, each with a buffer of a block.
constexpr int64_t kChainBlock = 256;
constexpr int kMaxValues = 40;

struct ChainOp {
  BlockFunction function;  // none: a sum
  std::vector<int> in;

  // Computes [0, n) of `out` from the buffers of `in`.
  void Run(float* const* values, float* out, int64_t n) const {
    if (function.run == nullptr) return Sum(values, out, n);
    function.run(function.settings, values[in[0]], values[in.back()], out, n);
  }

 private:
  void Sum(float* const* values, float* out, int64_t n) const {
    std::memcpy(out, values[in[0]], n * sizeof(float));
    for (size_t k = 1; k < in.size(); ++k) {
      ApplyBinary(functors::AddOp(), out, values[in[k]], out, n);
    }
  }
};

BlockFunction FunctionOf(const BoundOp& op) {
  const BlockFunction unary = UnaryBlockFunction(op);
  return unary.run != nullptr ? unary : BinaryBlockFunction(op);
}

struct Chain {
  int arguments = 0;
  std::vector<ChainOp> ops;
  DType dtype = DType::kF32;
  int64_t elements = 0;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const StreamedOutput output =
        StreamedOutput::Of(buffers, 0, dtype, elements);
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          output.Write(begin, end, [&](int64_t first, int64_t n, void* made) {
            for (int64_t i = 0; i < n; i += kChainBlock) {
              Block(buffers, first + i, std::min(kChainBlock, n - i), made, i);
            }
          });
        });
  }

 private:
  // Elements [at, at + n), made from element `place` of `to` on.
  void Block(const Buffers& buffers, int64_t at, int64_t n, void* to,
             int64_t place) const {
    alignas(64) float storage[kMaxValues * kChainBlock];
    float* values[kMaxValues];
    for (int v = 0; v < arguments; ++v) {
      // A block of an f32 argument is read where it is.
      values[v] = const_cast<float*>(LoadBlock(dtype, buffers.inputs[v], at, n,
                                               storage + v * kChainBlock));
    }
    for (size_t k = 0; k < ops.size(); ++k) {
      const int v = arguments + static_cast<int>(k);
      values[v] = storage + v * kChainBlock;
      const bool last = k + 1 == ops.size();
      float* out = last ? OutputBlock(dtype, to, place, values[v]) : values[v];
      ops[k].Run(values, out, n);
      if (last) {
        StoreBlock(dtype, out, to, place, n);
      } else {
        RoundTo(dtype, out, n);
      }
    }
  }
};

Chain MakeChain(const BoundOp& fusion) {
  Chain chain;
  chain.arguments = static_cast<int>(fusion.inputs().size());
  chain.dtype = fusion.outputs()[0].dtype;
  chain.elements = fusion.outputs()[0].elements();
  for (const BodyOp& op : BodyOps(fusion)) {
    chain.ops.push_back({FunctionOf(op.op), op.reads});
  }
  return chain;
}

bool Supports(const BoundOp& fusion) {
  const std::vector<BodyOp> ops = BodyOps(fusion);
  for (const BodyOp& op : ops) {
    if (op.op.type() != "sum" && FunctionOf(op.op).run == nullptr) return false;
  }
  return fusion.inputs().size() + ops.size() <= kMaxValues;
}

}  // namespace

void RegisterCpuElementwiseChain(KernelRegistry& registry) {
  Candidate candidate = MakeCandidate("blocks", MakeChain);
  candidate.supports = Supports;
  registry.AddPattern("elementwise_chain",
                      {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
}

}  // namespace kernels
}  // namespace halftone
