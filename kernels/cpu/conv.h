// How a convolution's operands lie, for every kernel that holds one.
#ifndef HALFTONE_KERNELS_CPU_CONV_H_
#define HALFTONE_KERNELS_CPU_CONV_H_

#include <functional>

#include "graph/base/dtype_fwd.h"
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

// Whether the library has instructions as wide as ours for the dtype, and
// whether both have tiles (amx.h) for it.
bool OnednnIsAsWide(DType dtype);
bool UsesAmx(DType dtype);

// Elements of the filter for each one that is made, of an image or a result:
// where it is large, it takes long to bring the filter into a format of the
// library's in every step.
double FilterShare(const ConvOp& conv);

// Before the library's where they support an op.
void RegisterCpuConvTiles(KernelRegistry& registry);  // conv_tiles.cc
// Of filters of one tap: before the library's where the filter's share is
// large, else for tune to choose; conv_product.cc.
void RegisterCpuConvProduct(KernelRegistry& registry, bool before_onednn);

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
