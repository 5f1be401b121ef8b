// For kernels that define what an op computes: plain loops in f32 over f32
// copies of all operands, each output rounded once. Slow; they stand behind
// the fast candidates and are what those are tested against.
#ifndef HALFTONE_KERNELS_CPU_REFERENCE_H_
#define HALFTONE_KERNELS_CPU_REFERENCE_H_

#include <functional>

#include "kernels/common/strides.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

// A tensor as f32 in its own memory order.
struct ReferenceTensor {
  float* data = nullptr;
  Extents dims, strides;

  float& At(int64_t a, int64_t b) const {
    return data[a * strides[0] + b * strides[1]];
  }
  float& At(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return data[a * strides[0] + b * strides[1] + c * strides[2] +
                d * strides[3]];
  }
};

// Operands by flat position. `outputs` are not cleared.
struct ReferenceCall {
  std::vector<ReferenceTensor> inputs, outputs;
};

// `make` runs once, at Prepare; what it returns computes the outputs.
using ReferenceBody = std::function<void(const ReferenceCall&)>;
Candidate ReferenceCandidate(std::function<ReferenceBody(const BoundOp&)> make);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_REFERENCE_H_
