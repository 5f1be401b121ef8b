// Bulk conversion between storage types and f32. All instruction sets give
// the bits of graph/base/half.h. `from` and `to` do not overlap, except that
// they may be the same f32 tensor.
#ifndef HALFTONE_KERNELS_CPU_CONVERT_H_
#define HALFTONE_KERNELS_CPU_CONVERT_H_

#include <cstdint>

#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "kernels/cpu/isa.h"

namespace halftone {
namespace kernels {

void ToFloat(const half* from, float* to, int64_t n, Isa isa = HostIsa());
void ToFloat(const bfloat16* from, float* to, int64_t n, Isa isa = HostIsa());
void ToFloat(const float* from, float* to, int64_t n, Isa isa = HostIsa());
void FromFloat(const float* from, half* to, int64_t n, Isa isa = HostIsa());
void FromFloat(const float* from, bfloat16* to, int64_t n, Isa isa = HostIsa());
void FromFloat(const float* from, float* to, int64_t n, Isa isa = HostIsa());

// From any dtype (integers and f64 to the nearest f32).
void ToFloat(DType dtype, const void* from, float* to, int64_t n);
// To f32, f16 or bf16 (CHECKed).
void FromFloat(DType dtype, const float* from, void* to, int64_t n);
// In place, to what they would be had they been stored as that dtype.
void RoundTo(DType dtype, float* x, int64_t n);

// ---- Block-wise access: element-wise kernels compute in f32, one block at a
// time, so that what they convert stays in the first-level cache.

// Elements per block: a buffer of 4 KiB.
inline constexpr int64_t kConvertBlock = 1024;

// Elements of f32, f16 or bf16 as they lie in memory.
struct StoredElements {
  DType dtype{};
  const void* data = nullptr;
};

// Elements [begin, begin + n) of a tensor as f32: where they are if they are
// f32, else converted into `buffer`, which holds n floats.
inline const float* LoadBlock(DType dtype, const void* tensor, int64_t begin,
                              int64_t n, float* buffer) {
  if (dtype == DType::kF32) return static_cast<const float*>(tensor) + begin;
  const char* from = static_cast<const char*>(tensor);
  ToFloat(dtype, from + begin * SizeOf(dtype), buffer, n);
  return buffer;
}

// Where to compute elements [begin, ...) of an output: in place if it is f32,
// else in `buffer`, to be followed by StoreBlock.
inline float* OutputBlock(DType dtype, void* tensor, int64_t begin,
                          float* buffer) {
  return dtype == DType::kF32 ? static_cast<float*>(tensor) + begin : buffer;
}
inline void StoreBlock(DType dtype, const float* computed, void* tensor,
                       int64_t begin, int64_t n) {
  if (dtype == DType::kF32) return;
  char* to = static_cast<char*>(tensor);
  FromFloat(dtype, computed, to + begin * SizeOf(dtype), n);
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONVERT_H_
