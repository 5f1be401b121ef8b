// Many Philox draws at a time.
#ifndef HALFTONE_KERNELS_CPU_RANDOM_H_
#define HALFTONE_KERNELS_CPU_RANDOM_H_

#include <cstdint>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/functors/dropout.h"

namespace halftone {
namespace kernels {

// The 32-bit draws of elements [first, first + n) of one sample of one step,
// n <= kConvertBlock: element e is word e % 4 of block e / 4. `buffer` holds
// kConvertBlock + 8 words; the result points into it.
const uint32_t* DrawBits(uint64_t key, uint64_t step, uint64_t sample,
                         int64_t first, int64_t n, uint32_t* buffer,
                         Isa isa = HostIsa());

// y[i] = x[i] dropped or scaled by the draws of elements [first, first + n) of
// one sample of one step. T: float, half or bfloat16. y may be x.
template <typename T>
void ApplyDropout(const functors::DropoutOp& dropout, uint64_t key,
                  uint64_t step, uint64_t sample, int64_t first, int64_t n,
                  const T* x, T* y);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_RANDOM_H_
