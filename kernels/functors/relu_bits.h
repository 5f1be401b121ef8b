// A relu's gradient by one bit per element: ReluGradOp, cut into what forward
// knows and what backward does with it.
#ifndef HALFTONE_KERNELS_FUNCTORS_RELU_BITS_H_
#define HALFTONE_KERNELS_FUNCTORS_RELU_BITS_H_

#include "kernels/functors/elementwise.h"

namespace halftone {
namespace functors {

// The bit: whether a gradient gets through a relu that made `out`.
HT_HOST_DEVICE inline bool PassesRelu(float out) {
  return ReluGradOp()(out, 1.0f) != 0.0f;
}

HT_HOST_DEVICE inline float ReluGradOfBit(bool passes, float grad) {
  return passes ? grad : 0.0f;
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_RELU_BITS_H_
