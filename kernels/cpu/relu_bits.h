// Blocks of a relu's bits where channels are innermost: bit k of byte j is of
// element 8 j + k.
#ifndef HALFTONE_KERNELS_CPU_RELU_BITS_H_
#define HALFTONE_KERNELS_CPU_RELU_BITS_H_

#include <cstdint>

namespace halftone {
namespace kernels {

// The bits of what a relu made: functors::PassesRelu. n is a multiple of 8.
void PackReluBits(const float* out, int64_t n, uint8_t* bits);

// x_grad[i] = functors::ReluGradOfBit(bit i, grad[i]). `x_grad` may be `grad`;
// n is a multiple of 8.
void ApplyReluBits(const uint8_t* bits, const float* grad, float* x_grad,
                   int64_t n);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_RELU_BITS_H_
