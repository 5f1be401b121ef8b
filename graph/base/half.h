// IEEE binary16 and bfloat16 as storage types: arithmetic is done in f32 and
// rounded to nearest even on the way back. Usable on host and device.
#ifndef HALFTONE_GRAPH_BASE_HALF_H_
#define HALFTONE_GRAPH_BASE_HALF_H_

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define HT_HOST_DEVICE __host__ __device__
#else
#define HT_HOST_DEVICE
#endif

namespace halftone {
namespace half_internal {

HT_HOST_DEVICE inline uint32_t Bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof(u));
  return u;
}
HT_HOST_DEVICE inline float FromBits(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof(f));
  return f;
}

// Round to nearest even; overflow gives infinity, NaN stays a quiet NaN.
HT_HOST_DEVICE inline uint16_t FloatToHalf(float value) {
#ifdef __CUDA_ARCH__
  uint16_t result;  // the same, but that all NaNs become one
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
#else
  const uint32_t bits = Bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {  // infinity or NaN
    const uint32_t payload = (magnitude >> 13) & 0x3ffu;
    const uint32_t nan = magnitude > 0x7f800000u ? (0x200u | payload) : 0u;
    return static_cast<uint16_t>(sign | 0x7c00u | nan);
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal half, or zero
    // Adding 0.5f puts the half's last place (2^-24) at the float's, so the
    // hardware's own round-to-nearest-even does the rounding.
    const uint32_t rounded = Bits(FromBits(magnitude) + 0.5f);
    return static_cast<uint16_t>(sign | (rounded - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(
      sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}

HT_HOST_DEVICE inline float HalfToFloat(uint16_t half) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(half));
  return result;
#else
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity, or a NaN: quiet, as hardware does
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return FromBits(sign | 0x7f800000u | quiet | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x400u) {  // subnormal: magnitude * 2^-24, exact
    return FromBits(sign | Bits(static_cast<float>(magnitude) * 0x1p-24f));
  }
  return FromBits(sign | ((magnitude << 13) + 0x38000000u));
#endif
}

HT_HOST_DEVICE inline uint16_t FloatToBFloat16(float value) {
#ifdef __CUDA_ARCH__
  uint16_t result;  // the same, but that all NaNs become one
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
#else
  const uint32_t bits = Bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

}  // namespace half_internal

struct half {
  uint16_t bits;

  half() = default;
  HT_HOST_DEVICE explicit half(float f) : bits(half_internal::FloatToHalf(f)) {}
  HT_HOST_DEVICE explicit operator float() const {
    return half_internal::HalfToFloat(bits);
  }
};

struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
  HT_HOST_DEVICE explicit bfloat16(float f)
      : bits(half_internal::FloatToBFloat16(f)) {}
  HT_HOST_DEVICE explicit operator float() const {
    return half_internal::FromBits(static_cast<uint32_t>(bits) << 16);
  }
};

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2, "storage types");

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_HALF_H_
