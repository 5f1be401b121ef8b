// The part of CUDA C++ that kernels/cuda uses, on the host: blocks one after
// the other, the threads of a block as fibres that change places at barriers
// and shuffles. What it is for and what it cannot show: README.md.
#ifndef HALFTONE_KERNELS_CUDA_EMULATION_EMULATOR_H_
#define HALFTONE_KERNELS_CUDA_EMULATION_EMULATOR_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__ static
#define __device__
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
  uint32_t x, y;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace halftone {
namespace emulation {

// In which order launches take blocks, the warps of a block between two of its
// barriers, and the lanes of a warp between two shuffles.
enum class Order { kAscending, kDescending, kShuffled };
inline constexpr Order kOrders[] = {Order::kAscending, Order::kDescending,
                                    Order::kShuffled};
// Of launches from now on; kAscending before the first call.
void SetOrder(Order order);

// Runs `thread` for each thread of each block. A warp goes on to the next
// barrier before another one starts: where a barrier is missing, one of two
// opposite orders has a thread read what is not written yet, or not any more.
// Aborts on a barrier that some threads of a block miss, or a shuffle that some
// lanes of a warp miss. `blocks` >= 1. Ranks in threads take turns.
void Launch(int64_t blocks, int threads, const std::function<void()>& thread);

void BlockBarrier();
// Fills shared memory with NaNs, once in each block that has it: what another
// block left is no result.
void ForgetShared(void* data, size_t bytes);
// Gives this lane the 8 bytes that `lane` of its warp brings to the same call.
uint64_t Exchange(uint64_t bits, int lane);
int Lane();
// Aborts with `what` unless `condition`.
void Check(bool condition, const char* what);

template <typename T>
T Shuffle(T value, int lane) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= sizeof(bits), "too wide for a shuffle");
  memcpy(&bits, &value, sizeof(T));
  bits = Exchange(bits, lane);
  memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace emulation
}  // namespace halftone

inline void __syncthreads() { halftone::emulation::BlockBarrier(); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return halftone::emulation::Shuffle(value,
                                      halftone::emulation::Lane() ^ mask);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
template <typename T>
T atomicAdd(T* to, T value) {
  const T old = *to;
  *to = old + value;
  return old;
}

#endif  // HALFTONE_KERNELS_CUDA_EMULATION_EMULATOR_H_
