// What a relu's gradient needs, in one bit per element: the ops by themselves,
// for where no fusion takes them. A byte for each thread, in any layout.
#include "kernels/common/relu_bits_shape.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/relu_bits.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    ReluBitsKernel(const __grid_constant__ ReluBitsShape shape, DType dtype,
                   const void* out, uint8_t* bits) {
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (j >= shape.bytes) return;
  const int64_t at = shape.ElementOf(j);
  unsigned byte = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const float x = LoadOne(dtype, out, at + k * shape.inner);
    byte |= unsigned{functors::PassesRelu(x)} << k;
  }
  bits[j] = static_cast<uint8_t>(byte);
}

__global__ void __launch_bounds__(kThreads)
    ReluGradBitsKernel(const __grid_constant__ ReluBitsShape shape, DType dtype,
                       const uint8_t* bits, const void* grad, void* x_grad) {
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (j >= shape.bytes) return;
  const int64_t at = shape.ElementOf(j);
  const unsigned byte = bits[j];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int64_t i = at + k * shape.inner;
    StoreOne(
        dtype, x_grad, i,
        functors::ReluGradOfBit((byte >> k & 1) != 0, LoadOne(dtype, grad, i)));
  }
}

Candidate MakeBits() {
  return CudaCandidate("bytes", [](const BoundOp& op) {
    const TensorDesc& image = ReluImageOf(op);
    return [shape = ReluBitsShape(image), dtype = image.dtype](
               const Buffers& buffers, Launcher& launch) {
      launch(ReluBitsKernel, CeilDiv(shape.bytes, kThreads), kThreads, shape,
             dtype, buffers.inputs[0],
             static_cast<uint8_t*>(buffers.outputs[0]));
    };
  });
}

Candidate MakeGradBits() {
  return CudaCandidate("bytes", [](const BoundOp& op) {
    const TensorDesc& image = ReluImageOf(op);
    return [shape = ReluBitsShape(image), dtype = image.dtype](
               const Buffers& buffers, Launcher& launch) {
      launch(ReluGradBitsKernel, CeilDiv(shape.bytes, kThreads), kThreads,
             shape, dtype, static_cast<const uint8_t*>(buffers.inputs[0]),
             buffers.inputs[1], buffers.outputs[0]);
    };
  });
}

void Register(KernelRegistry& registry, absl::string_view op,
              Candidate candidate) {
  candidate.supports = HasOneLayout;
  AddForSchema(registry, op, candidate);
}

}  // namespace

void RegisterCudaReluBits(KernelRegistry& registry) {
  Register(registry, "relu_bits", MakeBits());
  Register(registry, "relu_grad_bits", MakeGradBits());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
