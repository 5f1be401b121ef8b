// The k largest of each row, and how many rows have their label among them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/rows.h"
#include "kernels/functors/loss.h"
#include "kernels/functors/math.h"

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
                 const float* from =
                     rows.ReadFloats(in, buffers.inputs[0], first, n, x);
                 int64_t correct = 0;
                 for (int64_t r = 0; r < n; ++r) {
                   correct += IsAmongFirst(from + r * rows.length, rows.length,
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

// SelectLargest by a heap of the best so far, the last of them on top: most
// others are skipped at sight.
void SelectByHeap(const float* x, int64_t n, int64_t k, int64_t* places) {
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

// ---- A few of many: the k-th largest of the maxima of 32 lanes is a bound
// that k elements reach and hardly any other.

constexpr int kLanes = 4 * kVector;
// More than half of the lanes would let many elements pass.
constexpr int64_t kMostByBound = kLanes / 2;
constexpr int kMostCandidates = 64;

// What k of x[0, n) reach; NaNs are left out.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline float BoundOf(const float* x, int64_t n,
                                                  int64_t k) {
  const Vector lowest = -__builtin_inff() - Vector{};
  Vector most[4] = {lowest, lowest, lowest, lowest};
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Vector v = VectorAt(x + i + j * kVector);
      most[j] = v > most[j] ? v : most[j];
    }
  }
  float bound = 0;
  for (int64_t left = k; left > 0;) {
    const Vector a = most[0] > most[1] ? most[0] : most[1];
    const Vector b = most[2] > most[3] ? most[2] : most[3];
    bound = MaxOfLanes(a > b ? a : b);
    VectorMask taken = {};
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const VectorMask equal = most[j] == bound;
      most[j] = equal ? lowest : most[j];
      taken += equal;  // -1 each
    }
    taken += HT_LANES(taken, 4, 5, 6, 7);
    taken += HT_LANES(taken, 2, 3, 2, 3);
    left += taken[0] + taken[1];
  }
  return bound;
}

// The places of what reaches `bound` or is a NaN; how many, more than
// kMostCandidates if not all are there.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline int PlacesFrom(float bound, const float* x,
                                                   int64_t n, int32_t* places) {
  int count = 0;
  int64_t i = 0;
  for (; i + kLanes <= n && count <= kMostCandidates; i += kLanes) {
    VectorMask bits = {1, 2, 4, 8, 16, 32, 64, 128}, reach = {};
#pragma GCC unroll 4
    for (int j = 0; j < kLanes; j += kVector) {
      reach |= ~(VectorAt(x + i + j) < bound) & bits;
      bits <<= kVector;
    }
    reach |= HT_LANES(reach, 4, 5, 6, 7);
    reach |= HT_LANES(reach, 2, 3, 2, 3);
    uint32_t left = static_cast<uint32_t>(reach[0] | reach[1]);
    for (; left != 0; left &= left - 1) {
      places[count++] = static_cast<int32_t>(i) + __builtin_ctz(left);
    }
  }
  for (; i < n && count <= kMostCandidates; ++i) {
    places[count] = static_cast<int32_t>(i);
    count += x[i] < bound ? 0 : 1;
  }
  return count;
}

// A number by which candidates are in order, none like another: first x, NaNs
// above all and -0 as 0, then the place.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline int64_t OrderOf(float x, int32_t place) {
  const uint32_t bits = functors::Bits(x + 0.0f);
  const int32_t size = static_cast<int32_t>(bits & 0x7fffffffu);
  int32_t order = (bits >> 31) != 0 ? -size : size;
  if (x != x) order = INT32_MAX;
  return int64_t{order} * (int64_t{1} << 32) + (INT32_MAX - place);
}

// SelectLargest of many; false if too many are equal.
bool SelectFew(const float* x, int64_t n, int64_t k, int64_t* places) {
  bool found;
  ForIsa([=, to = &found] {
    int32_t candidates[kMostCandidates + kLanes + 1];
    int64_t order[kMostCandidates];
    const int count = PlacesFrom(BoundOf(x, n, k), x, n, candidates);
    *to = count <= kMostCandidates;
    if (!*to) return;
    for (int i = 0; i < count; ++i) {
      order[i] = OrderOf(x[candidates[i]], candidates[i]);
    }
    for (int i = 0; i < count; ++i) {
      int64_t before = 0;
      for (int j = 0; j < count; ++j) before += order[j] > order[i] ? 1 : 0;
      if (before < k) places[before] = candidates[i];
    }
  });
  return found;
}

// The places of the k largest of x[0, n) in descending order, NaNs first,
// the lower index first among equals.
void SelectLargest(const float* x, int64_t n, int64_t k, int64_t* places) {
  if (k <= kMostByBound && n >= 2 * kLanes && n <= INT32_MAX &&
      SelectFew(x, n, k, places)) {
    return;
  }
  SelectByHeap(x, n, k, places);
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
                 const float* from =
                     rows.ReadFloats(dtype, buffers.inputs[0], first, n, x);
                 for (int64_t r = 0; r < n; ++r) {
                   const float* row = from + r * rows.length;
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
