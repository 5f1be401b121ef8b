#include "kernels/cpu/tree_sum.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/functors/tree_sum.h"

namespace halftone {
namespace kernels {
namespace {

using functors::Statistics;

const float* In(const Buffers& buffers, int i) {
  return static_cast<const float*>(buffers.inputs[i]);
}
float* Out(const Buffers& buffers, int i) {
  return static_cast<float*>(buffers.outputs[i]);
}

void Copy(const float* from, float* to, int64_t n) {
  if (from != to) std::memcpy(to, from, n * sizeof(float));
}

// X, the partial sums and the term's number.
struct TreeKernel {
  int64_t elements;
  int levels;

  explicit TreeKernel(const BoundOp& op)
      : elements(op.inputs()[0].elements()),
        levels(op.InputCount("Partials")) {}

  int Carries(const Buffers& buffers) const {
    return functors::CarriesOf(
        *static_cast<const int64_t*>(buffers.inputs[1 + levels]));
  }
  // partials[carries - 1] + ... (partials[0] + X).
  void Carry(const Buffers& buffers, int carries, float* out,
             int threads) const {
    ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      Copy(In(buffers, 0) + begin, out + begin, n);
      for (int l = 0; l < carries; ++l) {
        const float* partial = In(buffers, 1 + l) + begin;
        for (int64_t i = 0; i < n; ++i) out[begin + i] += partial[i];
      }
    });
  }
};

struct TreeAccumulate : TreeKernel {
  using TreeKernel::TreeKernel;
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int carries = Carries(buffers);
    for (int l = 0; l < levels; ++l) {
      if (l == carries) continue;
      Copy(In(buffers, 1 + l), Out(buffers, l), elements);
    }
    if (carries >= levels) return;  // nobody reads such a term
    Carry(buffers, carries, Out(buffers, carries), stream.threads());
  }
};

struct TreeSum : TreeKernel {
  using TreeKernel::TreeKernel;
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    Carry(buffers, std::min(Carries(buffers), levels), Out(buffers, 0),
          stream.threads());
  }
};

// Mean, variance and count of a term, then each of the partial ones, by level.
struct StatisticsKernel {
  int64_t channels;
  int levels;

  explicit StatisticsKernel(const BoundOp& op)
      : channels(op.inputs()[0].elements()), levels(op.InputCount("Means")) {}

  int Carries(const Buffers& buffers) const {
    return functors::CarriesOf(
        *static_cast<const int64_t*>(buffers.inputs[3 + 3 * levels]));
  }
  Statistics Partial(const Buffers& buffers, int level, int64_t channel) const {
    const int mean = 3 + level;
    return {In(buffers, mean)[channel], In(buffers, mean + levels)[channel],
            *In(buffers, mean + 2 * levels)};
  }
  Statistics Carry(const Buffers& buffers, int carries, int64_t channel) const {
    Statistics carry = {In(buffers, 0)[channel], In(buffers, 1)[channel],
                        *In(buffers, 2)};
    for (int l = 0; l < carries; ++l) {
      carry = functors::CombineTwo(Partial(buffers, l, channel), carry);
    }
    return carry;
  }
};

struct TreeAccumulateStats : StatisticsKernel {
  using StatisticsKernel::StatisticsKernel;
  void operator()(const Buffers& buffers, runtime::Stream&) const {
    const int carries = Carries(buffers);
    for (int l = 0; l < levels; ++l) {
      for (int64_t c = 0; c < channels; ++c) {
        const Statistics made =
            l == carries ? Carry(buffers, carries, c) : Partial(buffers, l, c);
        Out(buffers, l)[c] = made.mean;
        Out(buffers, levels + l)[c] = made.variance;
        if (c + 1 == channels) *Out(buffers, 2 * levels + l) = made.count;
      }
    }
  }
};

struct TreeCombineStats : StatisticsKernel {
  using StatisticsKernel::StatisticsKernel;
  void operator()(const Buffers& buffers, runtime::Stream&) const {
    const int carries = std::min(Carries(buffers), levels);
    for (int64_t c = 0; c < channels; ++c) {
      const Statistics made = Carry(buffers, carries, c);
      Out(buffers, 0)[c] = made.mean;
      Out(buffers, 1)[c] = made.variance;
      *Out(buffers, 2) = made.count;
    }
  }
};

template <typename Kernel>
void Add(KernelRegistry& registry, absl::string_view op) {
  AddForSchema(registry, op, MakeCandidate("loop", [](const BoundOp& bound) {
                 return Kernel(bound);
               }));
}

}  // namespace

void RegisterCpuTreeSum(KernelRegistry& registry) {
  Add<TreeAccumulate>(registry, "tree_accumulate");
  Add<TreeSum>(registry, "tree_sum");
  Add<TreeAccumulateStats>(registry, "tree_accumulate_stats");
  Add<TreeCombineStats>(registry, "tree_combine_stats");
}

}  // namespace kernels
}  // namespace halftone
