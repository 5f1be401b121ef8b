// The pattern elementwise_chain: all ops of a body on one block of elements
// before the next, so that what is between them stays in the first-level
// cache. Each op's result is rounded to the tensors' dtype, as if it had been
// stored: the bits are the body's.
#include <cstring>
#include <type_traits>
#include <vector>

#include "graph/base/check.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/fusion.h"
#include "kernels/cpu/isa.h"
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
  // Computes [0, n) of `out` from the buffers of `in`.
  void (*run)(const ChainOp& op, float* const* values, float* out,
              int64_t n) = nullptr;
  std::vector<int> in;
  FunctorSettings settings = {};
};

template <typename F>
void RunUnary(const ChainOp& op, float* const* values, float* out, int64_t n) {
  ApplyUnary(op.settings.As<F>(), values[op.in[0]], out, n);
}

template <typename F>
void RunBinary(const ChainOp& op, float* const* values, float* out, int64_t n) {
  ApplyBinary(op.settings.As<F>(), values[op.in[0]], values[op.in[1]], out, n);
}

void RunSum(const ChainOp& op, float* const* values, float* out, int64_t n) {
  std::memcpy(out, values[op.in[0]], n * sizeof(float));
  for (size_t k = 1; k < op.in.size(); ++k) {
    const float* x = values[op.in[k]];
    ForIsa([=] {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] += x[i];
    });
  }
}

// `run` is null if the chain's kernel does not know the op.
ChainOp MakeOp(const BodyOp& body_op) {
  const BoundOp& op = body_op.op;
  ChainOp made;
  made.in = body_op.reads;
  if (op.type() == "sum") made.run = RunSum;
  ForEachElementwise([&](const auto& functor) {
    if (!functor.Computes(op)) return;
    using F = typename std::decay_t<decltype(functor)>::Functor;
    made.settings = FunctorSettings::Of(functor.Make(op));
    if constexpr (functor.operands == Operands::kOne) {
      made.run = IsLow(op.outputs()[0].dtype)
                     ? RunUnary<typename OfLow<F>::type>
                     : RunUnary<F>;
    } else {
      made.run = RunBinary<F>;
    }
  });
  return made;
}

struct Chain {
  int arguments = 0;
  std::vector<ChainOp> ops;
  DType dtype = DType::kF32;
  int64_t elements = 0;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ParallelFor(stream.threads(), elements, kMapGrain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t at = begin; at < end; at += kChainBlock) {
                    Block(buffers, at, std::min(kChainBlock, end - at));
                  }
                });
  }

 private:
  void Block(const Buffers& buffers, int64_t at, int64_t n) const {
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
      float* out = last ? OutputBlock(dtype, buffers.outputs[0], at, values[v])
                        : values[v];
      ops[k].run(ops[k], values, out, n);
      if (last) {
        StoreBlock(dtype, out, buffers.outputs[0], at, n);
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
  for (const BodyOp& op : BodyOps(fusion)) chain.ops.push_back(MakeOp(op));
  return chain;
}

bool Supports(const BoundOp& fusion) {
  const std::vector<BodyOp> ops = BodyOps(fusion);
  for (const BodyOp& op : ops) {
    if (MakeOp(op).run == nullptr) return false;
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
