// Parts of RegisterCpuAmp that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_AMP_H_
#define HALFTONE_KERNELS_CPU_AMP_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuCheckFinite(KernelRegistry& registry);  // amp_check_finite.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_AMP_H_
