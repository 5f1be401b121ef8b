// Activations and scale. Their gradients take two operands: see
// elementwise_binary.cc.
#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/map.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {

void RegisterCpuElementwise(KernelRegistry& registry) {
  ForEachUnary([&](absl::string_view op, auto functor) {
    AddForSchema(registry, op,
                 MakeCandidate("blocks", UnaryKernel([](const BoundOp&) {
                                 return decltype(functor)();
                               })));
  });
  AddForSchema(registry, "scale",
               MakeCandidate("blocks", UnaryKernel(MakeScale)));
  RegisterCpuBinary(registry);
  RegisterCpuCast(registry);
  RegisterCpuSum(registry);
  RegisterCpuGelu(registry);
}

}  // namespace kernels
}  // namespace halftone
