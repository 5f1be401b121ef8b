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

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_SORT_KEYS_H_
