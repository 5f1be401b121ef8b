// Function multiversioning for hot loops: the shipped binary is baseline
// x86-64, and a loop body is compiled once per instruction set.
//
//   ForIsa([=] { for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]); });
//
// The body and everything it calls inline is compiled for each instruction
// set, so it must be small: a loop or two over one block. One that takes an
// argument is told which: a std::integral_constant<Isa, ...>. -ffp-contract=off
// holds for all code, so the bits do not depend on the instruction set as
// long as the body fixes its order of additions.
#ifndef HALFTONE_KERNELS_CPU_ISA_H_
#define HALFTONE_KERNELS_CPU_ISA_H_

#include <type_traits>

#include "absl/base/attributes.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HT_ISA_X86 1
#define HT_TARGET_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
#define HT_TARGET_AVX512                                    \
  __attribute__((                                           \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma," \
             "f16c,bmi,bmi2")))
#else
#define HT_TARGET_AVX2
#define HT_TARGET_AVX512
#endif

namespace halftone {
namespace kernels {

enum class Isa { kBaseline, kAvx2, kAvx512 };

// The best instruction set of this machine that oneDNN may use, too: where its
// variable ONEDNN_MAX_CPU_ISA (SSE41, AVX2, AVX512_CORE ...) sets it a limit,
// the limit is ours. Read once.
Isa FindHostIsa();
inline Isa HostIsa() {
  static const Isa isa = FindHostIsa();
  return isa;
}

// Whether there are instructions for bf16 besides kAvx512's (AVX512_BF16), in
// the same limit.
extern const bool kHostHasBf16;

namespace isa_internal {
template <Isa kIsa, typename Body>
inline void Call(const Body& body) {
  using Tag = std::integral_constant<Isa, kIsa>;
  if constexpr (std::is_invocable<const Body&, Tag>::value) {
    body(Tag());
  } else {
    body();
  }
}
template <typename Body>
HT_TARGET_AVX512 __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE void
RunAvx512(const Body& body) {
  Call<Isa::kAvx512>(body);
}
template <typename Body>
HT_TARGET_AVX2 __attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE void RunAvx2(
    const Body& body) {
  Call<Isa::kAvx2>(body);
}
template <typename Body>
__attribute__((flatten)) ABSL_ATTRIBUTE_NOINLINE void RunBaseline(
    const Body& body) {
  Call<Isa::kBaseline>(body);
}
}  // namespace isa_internal

// Runs `body` compiled for `isa`, which this machine must have.
template <typename Body>
inline void ForIsa(Isa isa, const Body& body) {
  switch (isa) {
    case Isa::kAvx512:
      return isa_internal::RunAvx512(body);
    case Isa::kAvx2:
      return isa_internal::RunAvx2(body);
    case Isa::kBaseline:
      return isa_internal::RunBaseline(body);
  }
}
template <typename Body>
inline void ForIsa(const Body& body) {
  ForIsa(HostIsa(), body);
}

// Likewise, for a body that is told its set and captures more than a few
// addresses: it runs as a copy, whose captures stay in registers, while for all
// that the compiler knows what it stores may change those that others see.
template <typename Body>
inline void ForIsaOfCopy(const Body& shared) {
  ForIsa([&shared](auto isa) {
    const Body body = shared;
    body(isa);
  });
}

// Likewise, for a body of vectors of eight (lanes.h), which gains nothing by
// what AVX-512 has beyond AVX2.
template <typename Body>
inline void ForEights(const Body& body) {
  if (HostIsa() == Isa::kBaseline) return isa_internal::RunBaseline(body);
  isa_internal::RunAvx2(body);
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ISA_H_
