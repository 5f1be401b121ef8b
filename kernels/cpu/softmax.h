// What softmax and cross entropy share.
#ifndef HALFTONE_KERNELS_CPU_SOFTMAX_H_
#define HALFTONE_KERNELS_CPU_SOFTMAX_H_

#include <cstdint>

namespace halftone {
namespace kernels {

// Each of `rows` rows of x becomes exp(x - its maximum). sums[r] is the sum
// of row r. If `shifted` is given, shifted[r] is x - maximum at columns[r]
// (any value where columns[r] is out of range).
void ExpRows(float* x, int64_t rows, int64_t length, float* sums,
             const int64_t* columns = nullptr, float* shifted = nullptr);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_SOFTMAX_H_
