#include "kernels/cpu/isa.h"

#include "kernels/cpu/onednn.h"

namespace halftone {
namespace kernels {
namespace {

bool FindBf16() {
#ifdef HT_ISA_X86
  return HostIsa() == Isa::kAvx512 && OnednnHasBf16() &&
         __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace

// Found once, before main(): loops ask for it at each vector.
const bool kHostHasBf16 = FindBf16();

Isa FindHostIsa() {
#ifdef HT_ISA_X86
  if (OnednnHasAvx512() && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("f16c")) {
    return Isa::kAvx512;
  }
  if (OnednnHasAvx2() && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return Isa::kAvx2;
  }
#endif
  return Isa::kBaseline;
}

}  // namespace kernels
}  // namespace halftone
