// Parts of RegisterCpuReduction that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_REDUCTION_H_
#define HALFTONE_KERNELS_CPU_REDUCTION_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuArg(KernelRegistry& registry);   // reduction_arg.cc
void RegisterCpuScan(KernelRegistry& registry);  // reduction_scan.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_REDUCTION_H_
