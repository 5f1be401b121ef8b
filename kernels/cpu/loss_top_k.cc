// The k largest of each row, and how many rows have their label among them.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/rows.h"
#include "kernels/functors/loss.h"

namespace halftone {
namespace kernels {
namespace {

// Whether fewer than k of the row's scores come before that of `label`.
bool IsAmongFirst(const float* x, int64_t length, int64_t label, int64_t k) {
  if (label < 0 || label >= length) return false;
  int64_t before = 0;
  int64_t* result = &before;
  ForIsa([=] {
    int64_t count = 0;
    const float own = x[label];
    for (int64_t i = 0; i < length; ++i) {
      count += functors::ScoresBefore(x[i], i, own, label) ? 1 : 0;
    }
    *result = count;
  });
  return before < k;
}

struct CorrectCountKernel {
  Rows rows;
  RowGroups groups;
  DType in;
  int64_t k;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t* labels = static_cast<const int64_t*>(buffers.inputs[1]);
    std::atomic<int64_t> total{0};
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float*) {
                 rows.Load(in, buffers.inputs[0], first, n, x);
                 int64_t correct = 0;
                 for (int64_t r = 0; r < n; ++r) {
                   correct += IsAmongFirst(x + r * rows.length, rows.length,
                                           labels[first + r], k);
                 }
                 total += correct;
               });
    *static_cast<int64_t*>(buffers.outputs[0]) = total;
  }
};

// The first of x[begin, n) that is no number up to `most`; n if there is none.
int64_t FirstAbove(const float* x, int64_t begin, int64_t n, float most) {
  int64_t found;
  ForIsa([=, to = &found] {
    constexpr int kStep = 4 * kVector;
    int64_t i = begin;
    for (; i + kStep <= n; i += kStep) {
      VectorMask above = {};
#pragma GCC unroll 4
      for (int j = 0; j < kStep; j += kVector) {
        above |= ~(VectorAt(x + i + j) <= most);
      }
      above |= HT_LANES(above, 4, 5, 6, 7);
      above |= HT_LANES(above, 2, 3, 2, 3);
      if ((above[0] | above[1]) != 0) break;
    }
    while (i < n && x[i] <= most) ++i;
    *to = i;
  });
  return found;
}

// The places of the k largest of x[0, n) in descending order, NaNs first,
// the lower index first among equals. A heap of the best so far, the last of
// them on top: most others are skipped at sight.
void SelectLargest(const float* x, int64_t n, int64_t k, int64_t* places) {
  const auto before = [x](int64_t a, int64_t b) {
    if (x[a] != x[a]) return x[b] == x[b] || a < b;
    return x[a] > x[b] || (x[a] == x[b] && a < b);
  };
  for (int64_t i = 0; i < k; ++i) places[i] = i;
  std::make_heap(places, places + k, before);
  for (int64_t i = k; i < n; ++i) {
    const float least = x[places[0]];
    if (least != least) break;
    i = FirstAbove(x, i, n, least);
    if (i == n) break;
    std::pop_heap(places, places + k, before);
    places[k - 1] = i;
    std::push_heap(places, places + k, before);
  }
  std::sort_heap(places, places + k, before);
}

struct TopKKernel {
  Rows rows;
  RowGroups groups;
  DType dtype;
  int64_t k;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    int64_t* indices = static_cast<int64_t*>(buffers.outputs[1]);
    groups.Run(stream.threads(), buffers.workspace,
               [&](int64_t first, int64_t n, float* x, float* values) {
                 rows.Load(dtype, buffers.inputs[0], first, n, x);
                 for (int64_t r = 0; r < n; ++r) {
                   const float* row = x + r * rows.length;
                   int64_t* places = indices + (first + r) * k;
                   SelectLargest(row, rows.length, k, places);
                   for (int64_t i = 0; i < k; ++i) {
                     values[r * k + i] = row[places[i]];
                   }
                 }
                 char* out = static_cast<char*>(buffers.outputs[0]);
                 FromFloat(dtype, values, out + first * k * SizeOf(dtype),
                           n * k);
               });
  }
};

RowGroups GroupsOf(const BoundOp& op) {
  return RowGroups(Rows::Along(op.Input("X"), -1), 2, op.context().threads);
}

template <typename Kernel>
Candidate MakeTopK() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& op) {
    return Kernel{Rows::Along(op.Input("X"), -1), GroupsOf(op),
                  op.Input("X").dtype, op.Int("k")};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return GroupsOf(op).workspace_bytes();
  };
  return candidate;
}

}  // namespace

void RegisterCpuTopK(KernelRegistry& registry) {
  AddForSchema(registry, "correct_count", MakeTopK<CorrectCountKernel>());
  AddForSchema(registry, "top_k", MakeTopK<TopKKernel>());
}

}  // namespace kernels
}  // namespace halftone
