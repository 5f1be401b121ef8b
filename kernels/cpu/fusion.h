// Parts of RegisterCpuFusion that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_FUSION_H_
#define HALFTONE_KERNELS_CPU_FUSION_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuElementwiseChain(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_FUSION_H_
