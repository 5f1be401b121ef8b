#include "kernels/common/dispatch.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tree_sum.h"
#include "kernels/functors/tree_sum.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using functors::Statistics;

// Pointers of one op, by level; counts and variances of statistics alone.
struct Levels {
  const float *mean[functors::kTreeLevels], *variance[functors::kTreeLevels],
      *count[functors::kTreeLevels];
  float *mean_out[functors::kTreeLevels], *variance_out[functors::kTreeLevels],
      *count_out[functors::kTreeLevels];
  int levels;
};

// `sum`: of all terms, to mean_out[0]; else a term that is not the last.
__global__ void __launch_bounds__(kThreads)
    TreeKernel(const __grid_constant__ Levels at, const float* x,
               const int64_t* term, int64_t n, bool sum) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int carries = functors::CarriesOf(*term);
  float carry = x[i];
  for (int l = 0; l < at.levels && l < carries; ++l) {
    carry = at.mean[l][i] + carry;
  }
  if (sum) {
    at.mean_out[0][i] = carry;
    return;
  }
  for (int l = 0; l < at.levels; ++l) {
    if (l != carries && at.mean_out[l] == at.mean[l]) continue;
    at.mean_out[l][i] = l == carries ? carry : at.mean[l][i];
  }
}

// One block: all of it reads counts before one of its threads writes them.
__global__ void __launch_bounds__(kThreads)
    TreeStatsKernel(const __grid_constant__ Levels at, const float* mean,
                    const float* variance, const float* count,
                    const int64_t* term, int64_t channels, bool sum) {
  const int carries = functors::CarriesOf(*term);
  float carried_count = 0.0f;
  for (int64_t c = threadIdx.x; c < channels; c += kThreads) {
    Statistics carry = {mean[c], variance[c], *count};
    for (int l = 0; l < at.levels && l < carries; ++l) {
      carry = functors::CombineTwo(
          {at.mean[l][c], at.variance[l][c], *at.count[l]}, carry);
    }
    carried_count = carry.count;
    for (int l = 0; l < (sum ? 1 : at.levels); ++l) {
      const bool made = sum || l == carries;
      at.mean_out[l][c] = made ? carry.mean : at.mean[l][c];
      at.variance_out[l][c] = made ? carry.variance : at.variance[l][c];
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int l = 0; l < (sum ? 1 : at.levels); ++l) {
    const bool made = sum || l == carries;
    *at.count_out[l] = made ? carried_count : *at.count[l];
  }
}

const float* In(const Buffers& buffers, int i) {
  return static_cast<const float*>(buffers.inputs[i]);
}
float* Out(const Buffers& buffers, int i) {
  return static_cast<float*>(buffers.outputs[i]);
}

struct Tree {
  int64_t elements;
  int levels;
  bool sum;

  void operator()(const Buffers& buffers, Launcher& launch) const {
    Levels at = {};
    at.levels = levels;
    for (int l = 0; l < levels; ++l) at.mean[l] = In(buffers, 1 + l);
    for (int l = 0; l < (sum ? 1 : levels); ++l) {
      at.mean_out[l] = Out(buffers, l);
    }
    launch(
        TreeKernel, CeilDiv(elements, kThreads), kThreads, at, In(buffers, 0),
        static_cast<const int64_t*>(buffers.inputs[1 + levels]), elements, sum);
  }
};

struct TreeStats {
  int64_t channels;
  int levels;
  bool sum;

  void operator()(const Buffers& buffers, Launcher& launch) const {
    Levels at = {};
    at.levels = levels;
    for (int l = 0; l < levels; ++l) {
      at.mean[l] = In(buffers, 3 + l);
      at.variance[l] = In(buffers, 3 + levels + l);
      at.count[l] = In(buffers, 3 + 2 * levels + l);
    }
    const int made = sum ? 1 : levels;
    for (int l = 0; l < made; ++l) {
      at.mean_out[l] = Out(buffers, l);
      at.variance_out[l] = Out(buffers, made + l);
      at.count_out[l] = Out(buffers, 2 * made + l);
    }
    launch(TreeStatsKernel, 1, kThreads, at, In(buffers, 0), In(buffers, 1),
           In(buffers, 2),
           static_cast<const int64_t*>(buffers.inputs[3 + 3 * levels]),
           channels, sum);
  }
};

template <bool kSum>
auto MakeTree(const BoundOp& op) {
  return Tree{op.inputs()[0].elements(), op.InputCount("Partials"), kSum};
}
template <bool kSum>
auto MakeTreeStats(const BoundOp& op) {
  return TreeStats{op.inputs()[0].elements(), op.InputCount("Means"), kSum};
}

}  // namespace

void RegisterCudaTreeSum(KernelRegistry& registry) {
  const auto add = [&](absl::string_view op, auto make) {
    AddForSchema(registry, op, CudaCandidate("vector", make));
  };
  add("tree_accumulate", MakeTree<false>);
  add("tree_sum", MakeTree<true>);
  add("tree_accumulate_stats", MakeTreeStats<false>);
  add("tree_combine_stats", MakeTreeStats<true>);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
