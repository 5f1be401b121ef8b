#include "kernels/register_all.h"

namespace halftone {
namespace kernels {

const KernelRegistry& Kernels() {
  static const KernelRegistry* const registry = [] {
    auto* filled = new KernelRegistry;
    RegisterCpuElementwise(*filled);
    RegisterCpuDropout(*filled);
    RegisterCpuSoftmax(*filled);
    RegisterCpuLoss(*filled);
    RegisterCpuShape(*filled);
    RegisterCpuImage(*filled);
    RegisterCpuCreation(*filled);
    RegisterCpuAmp(*filled);
    RegisterCpuOptimizer(*filled);
    return filled;
  }();
  return *registry;
}

}  // namespace kernels
}  // namespace halftone
