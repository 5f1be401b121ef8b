// What softmax and cross entropy share.
#ifndef HALFTONE_KERNELS_CPU_SOFTMAX_H_
#define HALFTONE_KERNELS_CPU_SOFTMAX_H_

#include <cstdint>

#include "kernels/cpu/rows.h"

namespace halftone {
namespace kernels {

// Of each of n rows of x, one behind the other as Rows::Read has them: the
// maximum, exp(x - maximum) in rows of whole vectors (`padded` elements,
// lanes.h; anything behind the row's own), and their sum. Buffers of RowGroups
// (rows.h). `exponentials`: null where the sum is all that is wanted.
void ExpRows(const StoredElements& x, int64_t n, int64_t length, int64_t padded,
             float* exponentials, float* largest, float* sums);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_SOFTMAX_H_
