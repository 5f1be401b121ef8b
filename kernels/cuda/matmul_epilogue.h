// What a library does to a product before it stores it, by kernels of our own:
// where it has no algorithm for that, and what it wants to have prepared.
#ifndef HALFTONE_KERNELS_CUDA_MATMUL_EPILOGUE_H_
#define HALFTONE_KERNELS_CUDA_MATMUL_EPILOGUE_H_

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul_product.h"

namespace halftone {
namespace kernels {
namespace cuda {

// The mask of kReluGrad from relu's output `aux`: of column c the bit r % 8 of
// byte (c * aux_pitch() + r) / 8 is 1 where the gradient passes (a NaN's does,
// as in relu_grad); what fills a column up is 0. mask_bytes() in all.
void PackMask(Launcher& launch, const BoundProduct& product, const void* aux,
              void* mask);

// Bytes of workspace that FinishProduct takes.
int64_t FinishBytes(const BoundProduct& product);

// The epilogue of a product that is stored already, rounded: in `aux` for
// kGeluAux, else in `d`. Of kGelu*, the bias is in it. `summed`: the operand of
// kSum*. Rounds where the ops that the fusion stands for do.
struct ProductData {
  void* d = nullptr;
  void* aux = nullptr;  // only kGeluAux writes it
  const void* summed = nullptr;
  void* sums = nullptr;
  void* workspace = nullptr;
};
void FinishProduct(Launcher& launch, const BoundProduct& product,
                   const ProductData& data);

// d += bias, in f32, a bias for each row of d.
void AddBias(Launcher& launch, const BoundProduct& product, void* d,
             const void* bias);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_MATMUL_EPILOGUE_H_
