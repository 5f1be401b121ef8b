// Parts of RegisterCpuElementwise that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_ELEMENTWISE_H_
#define HALFTONE_KERNELS_CPU_ELEMENTWISE_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuBinary(KernelRegistry& registry);  // elementwise_binary.cc
void RegisterCpuCast(KernelRegistry& registry);    // elementwise_cast.cc
void RegisterCpuSum(KernelRegistry& registry);     // elementwise_sum.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ELEMENTWISE_H_
