// Activations and scale. Their gradients take two operands: see
// elementwise_binary.cc.
#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/map.h"
#include "kernels/functors/elementwise.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

template <typename F>
void AddUnary(KernelRegistry& registry, absl::string_view op) {
  AddForSchema(
      registry, op,
      MakeCandidate("blocks", UnaryKernel([](const BoundOp&) { return F(); })));
}

functors::ScaleOp MakeScale(const BoundOp& op) {
  return {static_cast<float>(op.Float("scale")),
          static_cast<float>(op.Float("bias")), op.Bool("bias_after_scale")};
}

}  // namespace

void RegisterCpuElementwise(KernelRegistry& registry) {
  AddUnary<functors::ReluOp>(registry, "relu");
  AddUnary<functors::TanhOp>(registry, "tanh");
  AddUnary<functors::SigmoidOp>(registry, "sigmoid");
  AddUnary<functors::ExpOp>(registry, "exp");
  AddUnary<functors::LogOp>(registry, "log");
  AddUnary<functors::SquareOp>(registry, "square");
  AddUnary<functors::SqrtOp>(registry, "sqrt");
  AddUnary<functors::AbsOp>(registry, "abs");
  AddForSchema(registry, "scale",
               MakeCandidate("blocks", UnaryKernel(MakeScale)));
  RegisterCpuBinary(registry);
  RegisterCpuCast(registry);
  RegisterCpuSum(registry);
}

}  // namespace kernels
}  // namespace halftone
