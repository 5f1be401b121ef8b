// What softmax and cross entropy share.
#ifndef HALFTONE_KERNELS_CPU_SOFTMAX_H_
#define HALFTONE_KERNELS_CPU_SOFTMAX_H_

#include <cstdint>

#include "graph/base/dtype.h"
#include "kernels/cpu/rows.h"

namespace halftone {
namespace kernels {

// Of each of n rows of x, one behind the other as Rows::Read has them: the
// maximum, exp(x - maximum) in rows of whole vectors (`padded` elements,
// lanes.h; anything behind the row's own), and their sum. Buffers of RowGroups
// (rows.h). `exponentials`: null where the sum is all that is wanted. kLow: for
// results of 16 bits (functors::LowExpUpTo0).
enum class Exponentials { kWhole, kLow };
inline Exponentials ExponentialsFor(DType result) {
  return IsLow(result) ? Exponentials::kLow : Exponentials::kWhole;
}
void ExpRows(const StoredElements& x, int64_t n, int64_t length, int64_t padded,
             float* exponentials, float* largest, float* sums,
             Exponentials kind = Exponentials::kWhole);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_SOFTMAX_H_
