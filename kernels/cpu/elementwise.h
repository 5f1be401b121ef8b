// Parts of RegisterCpuElementwise that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_ELEMENTWISE_H_
#define HALFTONE_KERNELS_CPU_ELEMENTWISE_H_

#include "kernels/bound_op.h"
#include "kernels/functors/elementwise.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Which functor computes which op: visit(op, functor) for all without
// attributes. One operand; two operands; gradients of activations.
template <typename Visit>
void ForEachUnary(const Visit& visit) {
  visit("relu", functors::ReluOp());
  visit("tanh", functors::TanhOp());
  visit("sigmoid", functors::SigmoidOp());
  visit("exp", functors::ExpOp());
  visit("log", functors::LogOp());
  visit("square", functors::SquareOp());
  visit("sqrt", functors::SqrtOp());
  visit("abs", functors::AbsOp());
}
template <typename Visit>
void ForEachBinary(const Visit& visit) {
  visit("elementwise_add", functors::AddOp());
  visit("elementwise_sub", functors::SubOp());
  visit("elementwise_mul", functors::MulOp());
  visit("elementwise_div", functors::DivOp());
}
template <typename Visit>
void ForEachActivationGrad(const Visit& visit) {
  visit("relu_grad", functors::ReluGradOp());
  visit("tanh_grad", functors::TanhGradOp());
  visit("sigmoid_grad", functors::SigmoidGradOp());
  visit("abs_grad", functors::AbsGradOp());
}
functors::ScaleOp MakeScale(const BoundOp& op);

void RegisterCpuBinary(KernelRegistry& registry);  // elementwise_binary.cc
void RegisterCpuCast(KernelRegistry& registry);    // elementwise_cast.cc
void RegisterCpuSum(KernelRegistry& registry);     // elementwise_sum.cc

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ELEMENTWISE_H_
