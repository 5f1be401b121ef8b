// Writes the list of the library's kernels, which the compiler reads.
#include <cstdio>

#include "kernels/cuda/register_all.h"
#include "runtime/gpu/targets.h"

int main() {
  halftone::kernels::KernelRegistry registry;
  halftone::kernels::RegisterCudaKernels(registry);
  const std::string text = halftone::runtime::KernelListText(registry.Keys());
  return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
}
