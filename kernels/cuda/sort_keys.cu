// A pass for each digit of 8 bits: what each block has of each, where that
// goes, and the move.
#include <utility>

#include "kernels/cuda/sort_keys.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// A block's keys as digits; -1 beyond the end.
HT_DEVICE int DigitAt(const int32_t* keys, int64_t i, int64_t n, int shift) {
  return i < n ? (keys[i] >> shift) & (kDigits - 1) : -1;
}

// counts[digit][block]: how often a block has each digit.
__global__ void __launch_bounds__(kThreads)
    CountKernel(const int32_t* keys, int64_t n, int shift, int64_t blocks,
                int32_t* counts) {
  HT_SHARED(int[kThreads], digits);
  const int t = threadIdx.x;
  digits[t] =
      DigitAt(keys, static_cast<int64_t>(blockIdx.x) * kThreads + t, n, shift);
  __syncthreads();
  int count = 0;
  for (int i = 0; i < kThreads; ++i) count += digits[i] == t ? 1 : 0;
  counts[t * blocks + blockIdx.x] = count;
}

constexpr int kSumThreads = 1024;  // of one block
constexpr int kOwnCounts = 8;      // of a thread, side by side

// counts becomes the sum of all before; one block.
__global__ void __launch_bounds__(kSumThreads)
    SumBeforeKernel(int32_t* counts, int64_t n) {
  HT_SHARED(int[2][kSumThreads], sums);
  const int t = threadIdx.x;
  int before = 0;
  for (int64_t first = 0; first < n; first += kSumThreads * kOwnCounts) {
    const int64_t at = first + t * kOwnCounts;
    int own[kOwnCounts], all = 0;
#pragma unroll
    for (int k = 0; k < kOwnCounts; ++k) {
      own[k] = at + k < n ? counts[at + k] : 0;
      all += own[k];
    }
    sums[0][t] = all;
    __syncthreads();
    int from = 0;
    for (int width = 1; width < kSumThreads; width *= 2) {
      sums[1 - from][t] =
          sums[from][t] + (t >= width ? sums[from][t - width] : 0);
      from = 1 - from;
      __syncthreads();
    }
    int sum = before + sums[from][t] - all;
#pragma unroll
    for (int k = 0; k < kOwnCounts; ++k) {
      if (at + k < n) counts[at + k] = sum;
      sum += own[k];
    }
    before += sums[from][kSumThreads - 1];
    __syncthreads();  // before the next counts overwrite the sums
  }
}

__global__ void __launch_bounds__(kThreads)
    ScatterKernel(Sorted from, int64_t n, int shift, int64_t blocks,
                  const int32_t* before, Sorted to) {
  HT_SHARED(int[kThreads], digits);
  const int t = threadIdx.x;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + t;
  digits[t] = DigitAt(from.keys, i, n, shift);
  __syncthreads();
  if (i >= n) return;
  int rank = 0;
  for (int k = 0; k < t; ++k) rank += digits[k] == digits[t] ? 1 : 0;
  const int64_t at = before[digits[t] * blocks + blockIdx.x] + rank;
  to.keys[at] = from.keys[i];
  to.places[at] = from.places[i];
}

}  // namespace

Sorted SortPlan::Sort(void* workspace, Launcher& launch) const {
  Sorted from = Unsorted(workspace);
  Sorted to{from.places + count, from.places + 2 * count};
  int32_t* const counts = to.places + count;
  for (int pass = 0; pass < passes; ++pass) {
    launch(CountKernel, blocks, kThreads, from.keys, count, 8 * pass, blocks,
           counts);
    launch(SumBeforeKernel, 1, kSumThreads, counts, kDigits * blocks);
    launch(ScatterKernel, blocks, kThreads, from, count, 8 * pass, blocks,
           counts, to);
    std::swap(from, to);
  }
  return from;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
