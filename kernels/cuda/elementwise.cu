// Element-wise ops of one operand. Of two: elementwise_binary.cu.
#include "kernels/common/elementwise_functors.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {

void RegisterCudaElementwise(KernelRegistry& registry) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands == Operands::kOne) {
      Candidate candidate = UnaryCandidate(
          [functor](const BoundOp& op) { return functor.Make(op); });
      candidate.supports = [functor](const BoundOp& op) {
        return functor.Computes(op) && HasOneLayout(op);
      };
      AddForSchema(registry, functor.op, candidate);
    }
  });
  RegisterCudaBinary(registry);
  RegisterCudaGradients(registry);
  RegisterCudaCast(registry);
  RegisterCudaSum(registry);
  RegisterCudaChain(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
