// Activations and scale. Their gradients take two operands: see
// elementwise_binary.cu.
#include "kernels/common/settings.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {

void RegisterCudaElementwise(KernelRegistry& registry) {
  ForEachUnary([&](absl::string_view op, auto functor) {
    AddForCuda(registry, op, UnaryCandidate([](const BoundOp&) {
                 return decltype(functor)();
               }));
  });
  AddForCuda(registry, "scale", UnaryCandidate(MakeScale));
  RegisterCudaBinary(registry);
  RegisterCudaCast(registry);
  RegisterCudaSum(registry);
  RegisterCudaGelu(registry);
  RegisterCudaChain(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
