// Sums of the virtual shards of a step.
#ifndef HALFTONE_KERNELS_CPU_TREE_SUM_H_
#define HALFTONE_KERNELS_CPU_TREE_SUM_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Called by RegisterCpuCollective.
void RegisterCpuTreeSum(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_TREE_SUM_H_
