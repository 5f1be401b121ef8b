// Element-wise ops: what their files share.
#ifndef HALFTONE_KERNELS_CPU_ELEMENTWISE_H_
#define HALFTONE_KERNELS_CPU_ELEMENTWISE_H_

#include <cstdint>

#include "kernels/bound_op.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// An op's functor on blocks: out[i] = f(x[i]), or f(x[i], y[i]). `out` may be
// an operand.
struct BlockFunction {
  // null: the op has no functor of the list.
  void (*run)(const FunctorSettings& settings, const float* x, const float* y,
              float* out, int64_t n) = nullptr;
  FunctorSettings settings = {};
};
BlockFunction UnaryBlockFunction(const BoundOp& op);  // `y` is not read
BlockFunction BinaryBlockFunction(const BoundOp& op);

// Kernels by `make` for the list's ops of one operand, or of two.
template <bool kOfOne, typename Make>
void AddElementwise(KernelRegistry& registry, const Make& make) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr ((functor.operands == Operands::kOne) == kOfOne) {
      Candidate candidate = MakeCandidate("blocks", make);
      candidate.supports = functor.chosen;
      AddForSchema(registry, functor.op, candidate);
    }
  });
}

// Parts of RegisterCpuElementwise.
void RegisterCpuBinary(KernelRegistry& registry);  // elementwise_binary.cc
void RegisterCpuCast(KernelRegistry& registry);    // elementwise_cast.cc
void RegisterCpuSum(KernelRegistry& registry);     // elementwise_sum.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ELEMENTWISE_H_
