// Parts of RegisterCpuFusion that have files of their own, and what they
// share.
#ifndef HALFTONE_KERNELS_CPU_FUSION_H_
#define HALFTONE_KERNELS_CPU_FUSION_H_

#include "kernels/bound_op.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// The flat position, in the fusion's buffers, of an input of an op of its
// body; -1 if `value` is not one of the fusion's arguments.
int ArgumentPosition(const Block& body, ValueId value);

void RegisterCpuElementwiseChain(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_FUSION_H_
