// 3x3 convolutions with fewer products (winograd.h), where images and filters
// lie channels_last.
#ifndef HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_
#define HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_

#include "graph/base/dtype.h"
#include "kernels/common/conv_shape.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Whether there is nothing faster on this machine: instructions for 16-bit
// factors make more of direct sums.
bool HasWinograd(DType dtype);
// Whether they take it, odd sizes apart: windows of 3x3 next to each other, and
// channels in whole panels. The number of samples never counts: what becomes of
// one does not depend on the others.
bool IsWinograd(const ConvOp& conv);

Candidate WinogradGradFilterCandidate();  // conv_winograd_filter.cc

// Adds them, "winograd".
void RegisterCpuConvWinograd(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_WINOGRAD_H_
