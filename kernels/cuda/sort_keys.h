// Keys sorted by their digits, equal ones in their order: what goes to one
// place lies side by side then, and is added up in that order without atomics.
#ifndef HALFTONE_KERNELS_CUDA_SORT_KEYS_H_
#define HALFTONE_KERNELS_CUDA_SORT_KEYS_H_

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Keys and where they came from.
struct Sorted {
  int32_t *keys, *places;
};

inline constexpr int kDigits = kThreads;  // of 8 bits
static_assert(kDigits == 256, "a thread for each digit");

// Keys from 0 up to `most`, of which there are `count`: what memory sorting
// them takes, and its launches.
struct SortPlan {
  int64_t count, blocks;
  int passes = 0;

  SortPlan(int64_t keys, int64_t most)
      : count(keys), blocks(CeilDiv(keys, kThreads)) {
    for (; most > 0; most /= kDigits) ++passes;
  }
  // Places are i32, and so are counts.
  static bool Supports(int64_t keys, int64_t most) {
    return most < INT32_MAX && keys < INT32_MAX / kDigits;
  }
  int64_t workspace_bytes() const {
    return (4 * count + kDigits * blocks) * int64_t{sizeof(int32_t)};
  }
  // Where the keys and their places are written, then sorted.
  Sorted Unsorted(void* workspace) const {
    int32_t* const memory = static_cast<int32_t*>(workspace);
    return {memory, memory + count};
  }
  Sorted Sort(void* workspace, Launcher& launch) const;
};

// ---- In kernels: what has one key.

// The places [first, end) of equal keys.
struct KeyRun {
  int32_t key;
  int64_t first, end;

  HT_DEVICE bool empty() const { return first == end; }
};

// The run that begins at `first` of `count`; empty if none does, or if its key
// is `none`.
HT_DEVICE KeyRun RunAt(const Sorted& sorted, int64_t count, int64_t none,
                       int64_t first) {
  const int32_t* const keys = sorted.keys;
  const int32_t key = keys[first];
  if (key == none || (first > 0 && keys[first - 1] == key)) {
    return {key, first, first};
  }
  int64_t step = 1;  // most runs are short, some are all there is
  while (first + step < count && keys[first + step] == key) step *= 2;
  int64_t last = first + step / 2;
  int64_t end = first + step < count ? first + step : count;
  while (end - last > 1) {
    const int64_t middle = last + (end - last) / 2;
    (keys[middle] == key ? last : end) = middle;
  }
  return {key, first, end};
}

// take(load(place)) for the places of a run, one after the other; whole batches
// are loaded before any of them is taken.
template <typename Load, typename Take>
HT_DEVICE void ForRun(const Sorted& sorted, const KeyRun& run, const Load& load,
                      const Take& take) {
  constexpr int kBatch = 16;
  int64_t k = run.first;
  for (; run.end - k >= kBatch; k += kBatch) {
    int32_t places[kBatch];
    decltype(load(0)) loaded[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) places[i] = sorted.places[k + i];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) loaded[i] = load(places[i]);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) take(loaded[i]);
  }
#pragma unroll 4
  for (; k < run.end; ++k) take(load(sorted.places[k]));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_SORT_KEYS_H_
