// Products of pairs of bf16 by Intel's tiles (AMX_BF16): 16 rows of 16 pairs
// times 16 columns in an instruction.
#ifndef HALFTONE_KERNELS_CPU_AMX_H_
#define HALFTONE_KERNELS_CPU_AMX_H_

#include <cstdint>

#include "kernels/cpu/small_product.h"

namespace halftone {
namespace kernels {

// Whether this machine has them and the system lets this process use them.
bool HasAmx();

// A product of pairs, as Multiply() makes it, but for the order of its sums: of
// a block of the depth, those of the first and those of the second elements of
// its pairs, in order, and what both add up to. False: it is not made, as that
// would not be faster; blocks, or a left factor that lies by rows, of a depth
// that can be cut evenly, are.
bool MultiplyAmx(const PartsProduct& product, bool add, float* out,
                 int64_t out_stride);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_AMX_H_
