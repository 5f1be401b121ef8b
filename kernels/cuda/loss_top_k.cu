// The k largest of each row, and how many rows have their label among them.
#include "kernels/cuda/loss.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/loss.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Key = unsigned long long;  // as shuffles and atomics take it

// Whether fewer than k of the row's scores come before that of its label.
// Integers are added up in any order: the result is the same.
template <int V>
__global__ void __launch_bounds__(kThreads)
    CorrectCountKernel(RowShape rows, DType in, const void* x,
                       const int64_t* labels, int64_t k, Key* total) {
  const Row row(in, x, rows, blockIdx.x);
  const int64_t label = labels[blockIdx.x];
  if (label < 0 || label >= rows.length) return;
  const float own = row.At(label);
  Key before = 0;
  row.ForEach<V>([&](int64_t i, const float(&v)[V]) {
    for (int j = 0; j < V; ++j) {
      before += functors::ScoresBefore(v[j], i + j, own, label) ? 1 : 0;
    }
  });
  before = CombineBlock(before, Key{0}, Plus());
  if (threadIdx.x == 0 && before < static_cast<Key>(k)) {
    atomicAdd(total, Key{1});
  }
}

struct CorrectCount {
  RowShape rows;
  DType in;
  int64_t k;

  void operator()(const Buffers& b, Launcher& launch) const {
    launch.Zero(b.outputs[0], sizeof(int64_t));
    WithVector(RowVector(rows, {in}, {b.inputs[0]}), [&](auto v) {
      launch(CorrectCountKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length, v), rows, in, b.inputs[0],
             static_cast<const int64_t*>(b.inputs[1]), k,
             static_cast<Key*>(b.outputs[0]));
    });
  }
};

// A number that is larger the earlier element i of value x comes: NaNs first,
// then descending values, the lower index first among equals. Never 0.
HT_DEVICE Key KeyOf(float x, int64_t i) {
  const uint32_t bits = half_internal::Bits(x == 0.0f ? 0.0f : x);
  uint32_t order = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  if (x != x) order = 0xffffffffu;
  return static_cast<Key>(order) << 32 | ~static_cast<uint32_t>(i);
}

struct Larger {
  HT_DEVICE Key operator()(Key a, Key b) const { return b > a ? b : a; }
};

template <int V>
__global__ void __launch_bounds__(kThreads)
    TopKKernel(RowShape rows, DType dtype, const void* x, int64_t k,
               void* values, int64_t* indices) {
  const Row row(dtype, x, rows, blockIdx.x);
  Key last = 0;
  for (int64_t j = 0; j < k; ++j) {
    Key best = 0;
    row.ForEach<V>([&](int64_t i, const float(&v)[V]) {
      for (int e = 0; e < V; ++e) {
        const Key key = KeyOf(v[e], i + e);
        if (j == 0 || key < last) best = Larger()(best, key);
      }
    });
    last = CombineBlock(best, Key{0}, Larger());
    if (threadIdx.x != 0) continue;
    const int64_t at = ~static_cast<uint32_t>(last);
    const int64_t to = static_cast<int64_t>(blockIdx.x) * k + j;
    indices[to] = at;
    StoreRaw<1>(dtype, values, to, LoadRaw<1>(dtype, x, row.offset + at));
  }
}

struct TopK {
  RowShape rows;
  DType in;
  int64_t k;

  void operator()(const Buffers& b, Launcher& launch) const {
    WithVector(RowVector(rows, {in}, {b.inputs[0]}), [&](auto v) {
      launch(TopKKernel<decltype(v)::value>, rows.count,
             RowThreads(rows.length, v), rows, in, b.inputs[0], k, b.outputs[0],
             static_cast<int64_t*>(b.outputs[1]));
    });
  }
};

// Keys have 32 bits for the place in a row.
bool HasShortRows(const BoundOp& op) {
  return op.Input("X").dims.back() <= INT32_MAX;
}

template <typename Kernel>
Candidate MakeTopK() {
  Candidate candidate = CudaCandidate("rows", [](const BoundOp& op) {
    return Kernel{RowShape::Along(op.Input("X"), -1), op.Input("X").dtype,
                  op.Int("k")};
  });
  candidate.supports = HasShortRows;
  return candidate;
}

}  // namespace

void RegisterCudaTopK(KernelRegistry& registry) {
  AddForSchema(registry, "correct_count", MakeTopK<CorrectCount>());
  Candidate top_k = MakeTopK<TopK>();
  top_k.supports = [](const BoundOp& op) {
    return HasShortRows(op) && op.Int("k") <= op.Input("X").dims.back();
  };
  AddForSchema(registry, "top_k", top_k);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
