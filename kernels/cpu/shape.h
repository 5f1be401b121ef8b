// Parts of RegisterCpuShape that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_SHAPE_H_
#define HALFTONE_KERNELS_CPU_SHAPE_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuTranspose(KernelRegistry& registry);  // shape_transpose.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_SHAPE_H_
