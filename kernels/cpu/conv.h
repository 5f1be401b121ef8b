// How a convolution's operands lie, for every kernel that holds one.
#ifndef HALFTONE_KERNELS_CPU_CONV_H_
#define HALFTONE_KERNELS_CPU_CONV_H_

#include <functional>

#include "kernels/common/conv_shape.h"
#include "kernels/cpu/onednn.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Where a forward convolution finds its operands: flat positions in the
// buffers of the op (or fusion) that runs it. -1: no bias.
struct ConvPositions {
  int input = 0, filter = 1, bias = -1;
};
// `op` is the conv2d itself or that of a fusion's body.
OnednnSpec ConvForward(const BoundOp& op, const ConvPositions& at);

// Candidates that run what `make` describes: one may bring operands into
// formats of the library's, the other takes images as they lie, and filters
// where there is code for that. Channels-last images stay with the first, too,
// where the library is fast with them, as their reorders would cost more than
// it gains: with AVX-512; with AVX2 it takes up to twice the time of its own
// formats for filters of more than one element and more than one channel.
std::vector<Candidate> ConvCandidates(const MakeOnednnSpec& make);

// Before those where they support an op; and one of filters of one tap for tune
// to choose.
void RegisterCpuConvTiles(KernelRegistry& registry);    // conv_tiles.cc
void RegisterCpuConvProduct(KernelRegistry& registry);  // conv_product.cc

// The candidate for those of what it supports of which `holds` is true.
Candidate OnlyWhere(const Candidate& candidate,
                    const std::function<bool(const ConvOp&)>& holds);

// ---- Depthwise ones, of our own: where the library is slow, or where it is
// not.

// Whether each channel has a filter of its own, and there are elements.
bool IsDepthwise(const ConvOp& conv);
// Whether the library has code of its own for the gradient of a depthwise
// filter: for others its loops take 5 to 40 times as long as ours.
bool HasDepthwiseGradFilter(const ConvOp& conv);
// "depthwise", gradients of filters, of channels-last images:
// conv_depthwise_filter.cc; "lines", of row-major ones: conv_lines.cc.
void RegisterCpuConvDepthwise(KernelRegistry& registry, bool before_onednn);
void RegisterCpuConvLines(KernelRegistry& registry, bool before_onednn);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_H_
