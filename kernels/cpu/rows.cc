#include "kernels/cpu/rows.h"

#include "kernels/common/dispatch.h"

namespace halftone {
namespace kernels {

void Rows::Load(DType dtype, const void* tensor, int64_t first, int64_t n,
                float* buffer) const {
  if (stride == 1) {
    const char* from = static_cast<const char*>(tensor);
    ToFloat(dtype, from + first * length * SizeOf(dtype), buffer, n * length);
    return;
  }
  DispatchType(FloatTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r = 0; r < n; ++r) {
      const T* from = static_cast<const T*>(tensor) + Offset(first + r);
      float* to = buffer + r * length;
      for (int64_t i = 0; i < length; ++i) {
        to[i] = static_cast<float>(from[i * stride]);
      }
    }
  });
}

void Rows::Store(DType dtype, const float* buffer, void* tensor, int64_t first,
                 int64_t n) const {
  if (stride == 1) {
    if (dtype == DType::kF32 &&
        buffer == Place(dtype, tensor, first, nullptr)) {
      return;
    }
    char* to = static_cast<char*>(tensor);
    FromFloat(dtype, buffer, to + first * length * SizeOf(dtype), n * length);
    return;
  }
  DispatchType(FloatTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r = 0; r < n; ++r) {
      T* to = static_cast<T*>(tensor) + Offset(first + r);
      const float* from = buffer + r * length;
      for (int64_t i = 0; i < length; ++i) {
        to[i * stride] = static_cast<T>(from[i]);
      }
    }
  });
}

bool Rows::StoresInPlace(DType dtype) const {
  return stride == 1 && (dtype == DType::kF32 || HostIsa() != Isa::kBaseline);
}

StoredElements Rows::Read(DType dtype, const void* tensor, int64_t first,
                          int64_t n, float* buffer) const {
  constexpr int64_t kMost = LowVector<Isa::kAvx512>::kSize;
  if (StoresInPlace(dtype) && (first + n) * length + kMost <= count * length) {
    const char* data = static_cast<const char*>(tensor);
    return {dtype, data + first * length * SizeOf(dtype)};
  }
  Load(dtype, tensor, first, n, buffer);
  return {DType::kF32, buffer};
}

const float* Rows::ReadFloats(DType dtype, const void* tensor, int64_t first,
                              int64_t n, float* buffer) const {
  if (dtype == DType::kF32) {
    return static_cast<const float*>(
        Read(dtype, tensor, first, n, buffer).data);
  }
  Load(dtype, tensor, first, n, buffer);
  return buffer;
}

}  // namespace kernels
}  // namespace halftone
