#include "kernels/cuda/emulation/emulator.h"

#include <cstring>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/block.h"

namespace halftone {
namespace emulation {
namespace {

using kernels::cuda::CombineBlock;
using kernels::cuda::CombineWarp;
using kernels::cuda::kWarp;
using kernels::cuda::Plus;
using Numbers = std::vector<float>;
struct ByBits {  // NaNs, too, differ from numbers
  bool operator()(const Numbers& a, const Numbers& b) const {
    return memcmp(&a[0], &b[0], a.size() * sizeof(float)) < 0;
  }
};
using Outcomes = std::set<Numbers, ByBits>;

// What kernel(out) makes of `n` zeros, in each order.
template <typename Kernel>
Outcomes Results(int64_t blocks, int threads, size_t n, const Kernel& kernel) {
  Outcomes results;
  for (Order order : kOrders) {
    SetOrder(order);
    Numbers out(n, 0.0f);
    Launch(blocks, threads, [&] { kernel(&out[0]); });
    results.insert(std::move(out));
  }
  return results;
}

TEST(EmulatorTest, EveryThreadOfEveryBlockRunsOnce) {
  for (int64_t blocks : {1, 2, 7}) {
    for (int threads : {1, 32, 256, 1024}) {
      const size_t n = blocks * threads;
      const auto results = Results(blocks, threads, n, [&](float* out) {
        EXPECT_EQ(gridDim.x, blocks);
        EXPECT_EQ(blockDim.x, threads);
        out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
      });
      EXPECT_EQ(results, Outcomes{Numbers(n, 1.0f)});
    }
  }
}

TEST(EmulatorTest, OrdersDiffer) {
  std::set<std::vector<unsigned>> of_blocks, of_threads;
  for (Order order : kOrders) {
    SetOrder(order);
    std::vector<unsigned> blocks, threads;
    Launch(7, 1, [&] { blocks.push_back(blockIdx.x); });
    Launch(1, 96, [&] { threads.push_back(threadIdx.x); });
    of_blocks.insert(blocks);
    of_threads.insert(threads);
  }
  EXPECT_EQ(of_blocks.size(), 3u);
  EXPECT_EQ(of_threads.size(), 3u);
}

// ---- Faults that it is for.

// Each thread reads what another one wrote.
template <bool kBarrier>
void Reverse(float* out) {
  HT_SHARED(float[256], shared);
  const int t = threadIdx.x;
  shared[t] = static_cast<float>(1 + blockIdx.x * 256 + t);
  if (kBarrier) __syncthreads();
  out[blockIdx.x * 256 + t] = shared[255 - t];
  __syncthreads();
}

TEST(EmulatorTest, ShowsABarrierMissingBeforeARead) {
  EXPECT_EQ(Results(3, 256, 768, Reverse<true>).size(), 1u);
  EXPECT_GT(Results(3, 256, 768, Reverse<false>).size(), 1u);
}

// CombineBlock without its last barrier.
template <bool kBarrier>
float SumOfBlock(float value) {
  HT_SHARED(float[8], warps);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  value = CombineWarp(value, Plus());
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = CombineWarp(lane < 8 ? warps[lane] : 0.0f, Plus());
  if (kBarrier) __syncthreads();
  return value;
}

template <bool kBarrier>
void TwoSums(float* out) {
  const float t = static_cast<float>(threadIdx.x);
  const float first = SumOfBlock<kBarrier>(t);
  out[threadIdx.x] = first + 2 * SumOfBlock<kBarrier>(1 - t);
}

TEST(EmulatorTest, ShowsABarrierMissingBeforeAWrite) {
  const float sum = 255 * 128;
  EXPECT_EQ(Results(1, 256, 256, TwoSums<true>),
            Outcomes{Numbers(256, sum + 2 * (256 - sum))});
  EXPECT_GT(Results(1, 256, 256, TwoSums<false>).size(), 1u);
}

// One thread finds out what all blocks have alike.
template <bool kBarrier>
void Broadcast(float* out) {
  HT_SHARED(float, shared);
  if (threadIdx.x == 0) shared = 7;
  if (kBarrier) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = shared == 7 ? 1.0f : 2.0f;
}

TEST(EmulatorTest, ShowsABarrierMissingWhereBlocksWriteTheSame) {
  EXPECT_EQ(Results(3, 64, 192, Broadcast<true>), Outcomes{Numbers(192, 1.0f)});
  EXPECT_GT(Results(3, 64, 192, Broadcast<false>).size(), 1u);
}

TEST(EmulatorTest, ShowsBlocksThatMeet) {
  const auto last = [](float* out) { out[0] = static_cast<float>(blockIdx.x); };
  EXPECT_GT(Results(5, 1, 1, last).size(), 1u);
}

TEST(EmulatorTest, ShowsSumsInAnyOrder) {
  const auto add = [](float* out) {
    atomicAdd(out, threadIdx.x == 0 ? 1e8f : 1.0f);
  };
  EXPECT_GT(Results(1, 256, 1, add).size(), 1u);
}

// ---- What it does not wait for.

void HalfAtBarrier() {
  if (threadIdx.x < 32) __syncthreads();
}
void SomeAtShuffle() {
  if (threadIdx.x % kWarp != 5) CombineWarp(1, Plus());
}

TEST(EmulatorDeathTest, MissedBarriersAndShuffles) {
  for (Order order : kOrders) {
    SetOrder(order);
    EXPECT_DEATH(Launch(1, 64, HalfAtBarrier), "miss a barrier");
    EXPECT_DEATH(Launch(1, 64, SomeAtShuffle), "lanes a shuffle");
  }
}

TEST(EmulatorTest, CombinesWholeBlocks) {
  for (int threads : {32, 256, 1024}) {
    const auto sums = Results(1, threads, threads, [](float* out) {
      out[threadIdx.x] = CombineBlock(1.0f, 0.0f, Plus());
    });
    EXPECT_EQ(sums, Outcomes{Numbers(threads, 1.0f * threads)});
  }
}

}  // namespace
}  // namespace emulation
}  // namespace halftone
