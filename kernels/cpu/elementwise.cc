// Element-wise ops of one operand. Of two: elementwise_binary.cc.
#include "kernels/cpu/elementwise.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/elementwise_functors.h"
#include "kernels/cpu/map.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {

void RegisterCpuElementwise(KernelRegistry& registry) {
  ForEachElementwise([&](const auto& functor) {
    if constexpr (functor.operands == Operands::kOne) {
      Candidate candidate =
          MakeCandidate("blocks", UnaryKernel([functor](const BoundOp& op) {
                          return functor.Make(op);
                        }));
      candidate.supports = functor.chosen;
      AddForSchema(registry, functor.op, candidate);
    }
  });
  RegisterCpuBinary(registry);
  RegisterCpuCast(registry);
  RegisterCpuSum(registry);
}

}  // namespace kernels
}  // namespace halftone
