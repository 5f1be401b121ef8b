// Parts of RegisterCpuOptimizer that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_OPTIMIZER_H_
#define HALFTONE_KERNELS_CPU_OPTIMIZER_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// optimizer_learning_rate.cc
void RegisterCpuLearningRate(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_OPTIMIZER_H_
