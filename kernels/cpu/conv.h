// How a convolution's operands lie, for every kernel that holds one.
#ifndef HALFTONE_KERNELS_CPU_CONV_H_
#define HALFTONE_KERNELS_CPU_CONV_H_

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
OnednnSpec ConvForward(const BoundOp& op, const ConvPositions& at,
                       bool any_format);

// Preferred where they support an op.
void RegisterCpuConvTiles(KernelRegistry& registry);  // conv_tiles.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_H_
