#include "kernels/register_all.h"

namespace halftone {
namespace kernels {

// Behind Kernels(), for libraries of ops (kernels/plugin).
KernelRegistry& GrowingKernels();

KernelRegistry& GrowingKernels() {
  static KernelRegistry* const registry = [] {
    auto* filled = new KernelRegistry;
    RegisterCpuConv(*filled);
    RegisterCpuMatmul(*filled);
    RegisterCpuElementwise(*filled);
    RegisterCpuDropout(*filled);
    RegisterCpuGroupCodes(*filled);
    RegisterCpuRecurrent(*filled);
    RegisterCpuSoftmax(*filled);
    RegisterCpuAttention(*filled);
    RegisterCpuLoss(*filled);
    RegisterCpuPointwiseLoss(*filled);
    RegisterCpuNorm(*filled);
    RegisterCpuRowNorm(*filled);
    RegisterCpuPool(*filled);
    RegisterCpuResize(*filled);
    RegisterCpuGridSampler(*filled);
    RegisterCpuLogic(*filled);
    RegisterCpuReduction(*filled);
    RegisterCpuMove(*filled);
    RegisterCpuJoin(*filled);
    RegisterCpuLookups(*filled);
    RegisterCpuShape(*filled);
    RegisterCpuImage(*filled);
    RegisterCpuCreation(*filled);
    RegisterCpuAmp(*filled);
    RegisterCpuCollective(*filled);
    RegisterCpuOptimizer(*filled);
    RegisterCpuFusion(*filled);
    return filled;
  }();
  return *registry;
}

const KernelRegistry& Kernels() { return GrowingKernels(); }

}  // namespace kernels
}  // namespace halftone
