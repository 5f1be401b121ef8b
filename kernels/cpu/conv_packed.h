// Convolutions of channels-last images and their gradients as products of
// packed matrices (small_product.h), with no unrolled images.
#ifndef HALFTONE_KERNELS_CPU_CONV_PACKED_H_
#define HALFTONE_KERNELS_CPU_CONV_PACKED_H_

#include <cstdint>

#include "kernels/common/conv_shape.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// The forward convolution, or gradient of an image, of an op, or of a fusion's,
// whose operands lie where the fusion's do.
ConvOp ConvOf(const BoundOp& op);

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whether images and filter do, in one group, and have elements.
bool LiesChannelsLast(const ConvOp& conv);
// Of windows next to each other along a line, where images and filter do: what
// a line of taps sees are neighbours in memory, so that it is one tap of as
// many channels. Others are as they were.
ConvOp JoinTaps(ConvOp conv);
// Whether they take it: it lies so, and few columns of the panels of the
// `columns` that are made are for nothing.
bool IsPackable(const ConvOp& conv, int64_t columns);

// Whether two neighbours in depth are multiplied together: of channels of the
// source, or, of a forward convolution of odd ones, along a line: its last one
// is then multiplied beside a zero, so that what is not finite behind it
// counts.
bool PairsDepth(const ConvOp& conv);
bool PairsAlongLines(const ConvOp& conv);
// Whether it comes before the library's.
bool IsPackedFirst(const BoundOp& op, DType dtype);

// conv_grad_filter.cc:
Candidate ConvGradFilterCandidate();
// The convolution of an op, or of a fusion's, whose operands lie where the
// fusion's do.
ConvOp GradFilterConvOf(const BoundOp& op);
// Of the channels of a filter's gradient, in panels, each block with all of
// OutputGrad: as few as leave no thread waiting for long where the pixels are
// cut to `parts`.
int64_t EvenBlocks(int64_t parts, int64_t panels, int threads);

// Adds them, "packed": where oneDNN is slower, or where it is not.
void RegisterCpuConvPacked(KernelRegistry& registry, bool before_onednn);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_PACKED_H_
