// Vectors of elements between memory and f32 registers. Kernels are compiled
// once per functor, not once per dtype: a dtype is the same for all threads,
// so that choosing by it costs next to nothing beside the memory access.
//
// V elements of one access: 8 where all operands are 16 bits wide, 4 where one
// is f32 (16-bit operands then move 8 bytes), 1 for tails and for pointers
// that are not aligned.
#ifndef HALFTONE_KERNELS_CUDA_VECTOR_H_
#define HALFTONE_KERNELS_CUDA_VECTOR_H_

#include <cstdint>
#include <initializer_list>

#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "kernels/cuda/platform.h"

namespace halftone {
namespace kernels {
namespace cuda {

// The bits of up to 8 elements of 16 bits or 4 of 32.
struct Raw {
  uint32_t words[4];
};

template <typename T>
HT_DEVICE T LoadAs(const void* p, int64_t bytes) {
  const char* at = static_cast<const char*>(p) + bytes;
#ifndef __CUDACC__
  emulation::Check(reinterpret_cast<uintptr_t>(at) % alignof(T) == 0,
                   "a load that is not aligned");
#endif
  return *reinterpret_cast<const T*>(at);
}
template <typename T>
HT_DEVICE void StoreAs(void* p, int64_t bytes, const T& value) {
  char* at = static_cast<char*>(p) + bytes;
#ifndef __CUDACC__
  emulation::Check(reinterpret_cast<uintptr_t>(at) % alignof(T) == 0,
                   "a store that is not aligned");
#endif
  *reinterpret_cast<T*>(at) = value;
}

// Elements [i, i + V) of a tensor of f32, f16 or bf16; i is a multiple of V.
template <int V>
HT_DEVICE Raw LoadRaw(DType dtype, const void* p, int64_t i) {
  if constexpr (V == 8) {
    const uint4 v = LoadAs<uint4>(p, i * 2);
    return {{v.x, v.y, v.z, v.w}};
  } else if constexpr (V == 4) {
    if (dtype == DType::kF32) {
      const uint4 v = LoadAs<uint4>(p, i * 4);
      return {{v.x, v.y, v.z, v.w}};
    }
    const uint2 v = LoadAs<uint2>(p, i * 2);
    return {{v.x, v.y, 0, 0}};
  } else {
    static_assert(V == 1, "1, 4 or 8");
    if (dtype == DType::kF32) return {{LoadAs<uint32_t>(p, i * 4), 0, 0, 0}};
    return {{LoadAs<uint16_t>(p, i * 2), 0, 0, 0}};
  }
}

template <int V>
HT_DEVICE void StoreRaw(DType dtype, void* p, int64_t i, const Raw& raw) {
  const uint32_t* w = raw.words;
  if constexpr (V == 8) {
    StoreAs(p, i * 2, uint4{w[0], w[1], w[2], w[3]});
  } else if constexpr (V == 4) {
    if (dtype == DType::kF32) {
      StoreAs(p, i * 4, uint4{w[0], w[1], w[2], w[3]});
    } else {
      StoreAs(p, i * 2, uint2{w[0], w[1]});
    }
  } else {
    if (dtype == DType::kF32) {
      StoreAs(p, i * 4, w[0]);
    } else {
      StoreAs(p, i * 2, static_cast<uint16_t>(w[0]));
    }
  }
}

HT_DEVICE float FromBits16(DType dtype, uint32_t bits) {
  const uint16_t low = static_cast<uint16_t>(bits);
  return dtype == DType::kF16 ? half_internal::HalfToFloat(low)
                              : half_internal::FromBits(bits << 16);
}
HT_DEVICE uint32_t ToBits16(DType dtype, float x) {
  return dtype == DType::kF16 ? half_internal::FloatToHalf(x)
                              : half_internal::FloatToBFloat16(x);
}

template <int V>
HT_DEVICE void Unpack(DType dtype, const Raw& raw, float (&x)[V]) {
  if constexpr (V <= 4) {
    if (dtype == DType::kF32) {
#pragma unroll
      for (int k = 0; k < V; ++k) x[k] = half_internal::FromBits(raw.words[k]);
      return;
    }
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    x[k] = FromBits16(dtype, (raw.words[k / 2] >> (k % 2 * 16)) & 0xffffu);
  }
}

template <int V>
HT_DEVICE Raw Pack(DType dtype, const float (&x)[V]) {
  Raw raw = {{0, 0, 0, 0}};
  if constexpr (V <= 4) {
    if (dtype == DType::kF32) {
#pragma unroll
      for (int k = 0; k < V; ++k) raw.words[k] = half_internal::Bits(x[k]);
      return raw;
    }
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    raw.words[k / 2] |= ToBits16(dtype, x[k]) << (k % 2 * 16);
  }
  return raw;
}

template <int V>
HT_DEVICE void LoadVector(DType dtype, const void* p, int64_t i,
                          float (&x)[V]) {
  Unpack(dtype, LoadRaw<V>(dtype, p, i), x);
}
template <int V>
HT_DEVICE void StoreVector(DType dtype, void* p, int64_t i,
                           const float (&x)[V]) {
  StoreRaw<V>(dtype, p, i, Pack(dtype, x));
}
HT_DEVICE float LoadOne(DType dtype, const void* p, int64_t i) {
  float x[1];
  LoadVector(dtype, p, i, x);
  return x[0];
}
HT_DEVICE void StoreOne(DType dtype, void* p, int64_t i, float x) {
  const float values[1] = {x};
  StoreVector(dtype, p, i, values);
}

// V f32 numbers from x[i] on; i is a multiple of V, x of f32 aligned to 16.
template <int V>
HT_DEVICE void LoadFloats(const float* x, int64_t i, float (&to)[V]) {
  if constexpr (V == 1) {
    to[0] = x[i];
  } else {
#pragma unroll
    for (int k = 0; k < V; k += 4) {
      const uint4 v = LoadAs<uint4>(x, (i + k) * 4);
      to[k] = half_internal::FromBits(v.x);
      to[k + 1] = half_internal::FromBits(v.y);
      to[k + 2] = half_internal::FromBits(v.z);
      to[k + 3] = half_internal::FromBits(v.w);
    }
  }
}

// ---- On the host.

// The widest V for operands of these dtypes.
inline int VectorOf(std::initializer_list<DType> dtypes) {
  int v = 8;
  for (DType dtype : dtypes) {
    if (dtype != DType::kInvalid && !IsLow(dtype)) v = 4;
  }
  return v;
}
// Whether vectors can be moved to and from all of these.
inline bool Aligned(std::initializer_list<const void*> pointers) {
  uintptr_t bits = 0;
  for (const void* p : pointers) bits |= reinterpret_cast<uintptr_t>(p);
  return bits % 16 == 0;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_VECTOR_H_
