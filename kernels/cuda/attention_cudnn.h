// Attention as graphs of cuDNN: of 16-bit operands, without mask or dropout.
#ifndef HALFTONE_KERNELS_CUDA_ATTENTION_CUDNN_H_
#define HALFTONE_KERNELS_CUDA_ATTENTION_CUDNN_H_

#include <memory>

#include "kernels/cuda/conv_cudnn.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Of scaled_dot_product_attention, its gradient, or what it is at test time.
BoundGraph AttentionGraph(const BoundOp& op);

// What is left to our own kernels: dropout, whose masks in the library are not
// those that other devices draw; a mask, since it knows no bool ones and makes
// NaNs of rows that look at nothing. The library says which engine takes a
// graph only where there is a driver: without one our own are planned.
bool CudnnTakesAttention(const BoundOp& op);

void RegisterCudnnAttention(KernelRegistry& registry,
                            const std::shared_ptr<CudnnCache>& cache);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ATTENTION_CUDNN_H_
