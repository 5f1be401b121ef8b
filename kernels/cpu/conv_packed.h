// Convolutions of channels-last images and their gradients as products of
// packed matrices (small_product.h), with no unrolled images.
#ifndef HALFTONE_KERNELS_CPU_CONV_PACKED_H_
#define HALFTONE_KERNELS_CPU_CONV_PACKED_H_

#include <cstdint>

#include "kernels/common/conv_shape.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whether they take it: all lies in channels_last, in one group, has elements,
// and few columns of the panels of the `columns` that are made are for nothing.
bool IsPackable(const ConvOp& conv, int64_t columns);

Candidate ConvGradFilterCandidate();  // conv_grad_filter.cc

// Adds them, "packed": where oneDNN is slower, or where it is not.
void RegisterCpuConvPacked(KernelRegistry& registry, bool before_onednn);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_PACKED_H_
