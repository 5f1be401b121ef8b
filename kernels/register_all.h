// Every kernel of this binary, by explicit functions: one per family file,
// kernels/cpu/<family>.cc, with the same names as graph/ops.
#ifndef HALFTONE_KERNELS_REGISTER_ALL_H_
#define HALFTONE_KERNELS_REGISTER_ALL_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuConv(KernelRegistry& registry);
void RegisterCpuMatmul(KernelRegistry& registry);
void RegisterCpuElementwise(KernelRegistry& registry);
void RegisterCpuDropout(KernelRegistry& registry);
void RegisterCpuGroupCodes(KernelRegistry& registry);
void RegisterCpuRecurrent(KernelRegistry& registry);
void RegisterCpuSoftmax(KernelRegistry& registry);
void RegisterCpuAttention(KernelRegistry& registry);
void RegisterCpuLoss(KernelRegistry& registry);
void RegisterCpuPointwiseLoss(KernelRegistry& registry);
void RegisterCpuNorm(KernelRegistry& registry);
void RegisterCpuRowNorm(KernelRegistry& registry);
void RegisterCpuPool(KernelRegistry& registry);
void RegisterCpuResize(KernelRegistry& registry);
void RegisterCpuGridSampler(KernelRegistry& registry);
void RegisterCpuLogic(KernelRegistry& registry);
void RegisterCpuReduction(KernelRegistry& registry);
void RegisterCpuMove(KernelRegistry& registry);
void RegisterCpuJoin(KernelRegistry& registry);
void RegisterCpuLookups(KernelRegistry& registry);
void RegisterCpuShape(KernelRegistry& registry);
void RegisterCpuImage(KernelRegistry& registry);
void RegisterCpuCreation(KernelRegistry& registry);
void RegisterCpuAmp(KernelRegistry& registry);
void RegisterCpuCollective(KernelRegistry& registry);
void RegisterCpuOptimizer(KernelRegistry& registry);
void RegisterCpuFusion(KernelRegistry& registry);  // patterns

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_REGISTER_ALL_H_
