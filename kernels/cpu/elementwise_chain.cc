// The pattern elementwise_chain: all ops of a body on one block of elements
// before the next, so that what is between them stays in the first-level
// cache. Each op's result is rounded to the tensors' dtype, as if it had been
// stored: the bits are the body's.
#include <cstring>
#include <type_traits>
#include <vector>

#include "graph/base/check.h"
#include "kernels/common/gelu_settings.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/fusion.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"

namespace halftone {
namespace kernels {
namespace {

// Values in flight are arguments, then results, each with a buffer of a block.
constexpr int64_t kChainBlock = 256;
constexpr int kMaxValues = 40;

struct ChainOp {
  // Computes [0, n) of `out` from the buffers of `in`.
  void (*run)(const ChainOp& op, float* const* values, float* out, int64_t n);
  std::vector<int> in;
  functors::ScaleOp scale;  // of a `scale` op
  bool tanh = false;        // of gelu and gelu_grad
};

template <typename F>
void RunUnary(const ChainOp& op, float* const* values, float* out, int64_t n) {
  const float* x = values[op.in[0]];
  ForIsa([=, f = F()] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
  });
}

template <typename F>
void RunBinary(const ChainOp& op, float* const* values, float* out, int64_t n) {
  const float* x = values[op.in[0]];
  const float* y = values[op.in[1]];
  ForIsa([=, f = F()] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
  });
}

void RunScale(const ChainOp& op, float* const* values, float* out, int64_t n) {
  const float* x = values[op.in[0]];
  ForIsa([=, f = op.scale] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
  });
}

void RunGelu(const ChainOp& op, float* const* values, float* out, int64_t n) {
  WithGelu(op.tanh, [&](auto gelu, auto) {
    RunUnary<decltype(gelu)>(op, values, out, n);
  });
}

void RunGeluGrad(const ChainOp& op, float* const* values, float* out,
                 int64_t n) {
  WithGelu(op.tanh, [&](auto, auto gelu_grad) {
    RunBinary<decltype(gelu_grad)>(op, values, out, n);
  });
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

// Null if the chain's kernel does not know the op.
decltype(ChainOp::run) FindRun(absl::string_view type) {
  if (type == "scale") return RunScale;
  if (type == "sum") return RunSum;
  if (type == "gelu") return RunGelu;
  if (type == "gelu_grad") return RunGeluGrad;
  decltype(ChainOp::run) found = nullptr;
  ForEachUnary([&](absl::string_view op, auto functor) {
    if (op == type) found = RunUnary<decltype(functor)>;
  });
  ForEachBinary([&](absl::string_view op, auto functor) {
    if (op == type) found = RunBinary<decltype(functor)>;
  });
  ForEachActivationGrad([&](absl::string_view op, auto functor) {
    if (op == type) found = RunBinary<decltype(functor)>;
  });
  return found;
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
    alignas(64) char rounded[kChainBlock * sizeof(float)];
    for (size_t k = 0; k < ops.size(); ++k) {
      const int v = arguments + static_cast<int>(k);
      values[v] = storage + v * kChainBlock;
      const bool last = k + 1 == ops.size();
      float* out = last ? OutputBlock(dtype, buffers.outputs[0], at, values[v])
                        : values[v];
      ops[k].run(ops[k], values, out, n);
      if (last) {
        StoreBlock(dtype, out, buffers.outputs[0], at, n);
      } else if (dtype != DType::kF32) {
        FromFloat(dtype, out, rounded, n);
        ToFloat(dtype, rounded, out, n);
      }
    }
  }
};

Chain MakeChain(const BoundOp& fusion) {
  const halftone::Block& body = *fusion.op().body;
  Chain chain;
  chain.arguments = static_cast<int>(fusion.inputs().size());
  chain.dtype = fusion.outputs()[0].dtype;
  chain.elements = fusion.outputs()[0].elements();
  std::vector<int> place(body.value_limit(), -1);
  const std::vector<ValueId> feeds = body.Feeds();
  for (size_t i = 0; i < feeds.size(); ++i) {
    place[feeds[i].index()] = static_cast<int>(i);
  }
  for (OpId id = body.first(); id.valid(); id = body.next(id)) {
    const Op& op = body.op(id);
    ChainOp step;
    step.run = FindRun(op.schema->name());
    for (ValueId in : op.inputs.all()) step.in.push_back(place[in.index()]);
    if (op.schema->name() == "scale") {
      step.scale =
          MakeScale(BoundOp(body, op, fusion.symbols(), fusion.context()));
    }
    if (op.schema->name() == "gelu" || op.schema->name() == "gelu_grad") {
      step.tanh = IsTanh(BoundOp(body, op, fusion.symbols(), fusion.context()));
    }
    place[op.outputs.all()[0].index()] =
        chain.arguments + static_cast<int>(chain.ops.size());
    chain.ops.push_back(std::move(step));
  }
  return chain;
}

bool Supports(const BoundOp& fusion) {
  const halftone::Block& body = *fusion.op().body;
  size_t values = fusion.inputs().size();
  for (OpId id = body.first(); id.valid(); id = body.next(id), ++values) {
    if (FindRun(body.op(id).schema->name()) == nullptr) return false;
  }
  return values <= kMaxValues;
}

}  // namespace

void RegisterCpuElementwiseChain(KernelRegistry& registry) {
  Candidate candidate = MakeCandidate("blocks", MakeChain);
  candidate.supports = Supports;
  registry.AddPattern("cpu", "elementwise_chain",
                      {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
}

}  // namespace kernels
}  // namespace halftone
