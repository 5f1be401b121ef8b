// The attribute of gelu and gelu_grad as their functors take it.
#ifndef HALFTONE_KERNELS_COMMON_GELU_SETTINGS_H_
#define HALFTONE_KERNELS_COMMON_GELU_SETTINGS_H_

#include "kernels/bound_op.h"
#include "kernels/functors/gelu.h"

namespace halftone {
namespace kernels {

// By tanh; otherwise exact.
inline bool IsTanh(const BoundOp& op) {
  return op.Str("approximate") == "tanh";
}

// body(op, grad_op) with the functors for it.
template <typename Body>
void WithGelu(bool tanh, const Body& body) {
  if (tanh) {
    body(functors::TanhGeluOp(), functors::TanhGeluGradOp());
  } else {
    body(functors::GeluOp(), functors::GeluGradOp());
  }
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_GELU_SETTINGS_H_
