// Parts of RegisterCpuLoss that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_LOSS_H_
#define HALFTONE_KERNELS_CPU_LOSS_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

void RegisterCpuReduce(KernelRegistry& registry);  // loss_reduce.cc
void RegisterCpuTopK(KernelRegistry& registry);    // loss_top_k.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LOSS_H_
