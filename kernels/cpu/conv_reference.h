// The convolutions' definitions as loops.
#ifndef HALFTONE_KERNELS_CPU_CONV_REFERENCE_H_
#define HALFTONE_KERNELS_CPU_CONV_REFERENCE_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuConvReference(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_REFERENCE_H_
