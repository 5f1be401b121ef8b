// Parts of RegisterCudaShape that have files of their own.
#ifndef HALFTONE_KERNELS_CUDA_SHAPE_H_
#define HALFTONE_KERNELS_CUDA_SHAPE_H_

#include <cstdint>
#include <initializer_list>

#include "graph/base/half.h"
#include "kernels/cuda/platform.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// The largest power of two up to 16 that divides all of these.
inline int64_t CommonUnit(std::initializer_list<int64_t> bytes) {
  uint64_t bits = 16;
  for (int64_t b : bytes) bits |= static_cast<uint64_t>(b);
  return static_cast<int64_t>(bits & ~(bits - 1));
}
inline int64_t Address(const void* p) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p));
}

// Calls body(a value of a type of an element's size: 1, 2, 4 or 8 bytes).
template <typename Body>
void WithElement(int64_t size, const Body& body) {
  if (size == 8) return body(uint2());
  if (size == 4) return body(uint32_t());
  if (size == 2) return body(uint16_t());
  body(uint8_t());
}
// Calls body(a value of a type of `unit` bytes: 1, 2, 4, 8 or 16).
template <typename Body>
void WithUnit(int64_t unit, const Body& body) {
  if (unit == 16) return body(uint4());
  WithElement(unit, body);
}

void RegisterCudaPadChannels(KernelRegistry& registry);  // shape_channels.cu
void RegisterCudaTranspose(KernelRegistry& registry);    // shape_transpose.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_SHAPE_H_
