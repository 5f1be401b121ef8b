#include <cstring>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "runtime/checkpoint/safetensors.h"

namespace halftone {
namespace runtime {
namespace {

float LoadFloat(const Tensor& t, int64_t i) {
  const char* at = t.bytes.data() + i * SizeOf(t.dtype);
  if (t.dtype == DType::kF32) {
    float v;
    std::memcpy(&v, at, sizeof(v));
    return v;
  }
  if (t.dtype == DType::kF16) {
    half v;
    std::memcpy(&v, at, sizeof(v));
    return static_cast<float>(v);
  }
  if (t.dtype == DType::kBF16) {
    bfloat16 v;
    std::memcpy(&v, at, sizeof(v));
    return static_cast<float>(v);
  }
  double v;
  std::memcpy(&v, at, sizeof(v));
  return static_cast<float>(v);
}

void StoreFloat(float value, Tensor& t, int64_t i) {
  char* at = &t.bytes[i * SizeOf(t.dtype)];
  if (t.dtype == DType::kF32) {
    std::memcpy(at, &value, sizeof(value));
  } else if (t.dtype == DType::kF16) {
    const half v(value);
    std::memcpy(at, &v, sizeof(v));
  } else if (t.dtype == DType::kBF16) {
    const bfloat16 v(value);
    std::memcpy(at, &v, sizeof(v));
  } else {
    const double v = value;
    std::memcpy(at, &v, sizeof(v));
  }
}

}  // namespace

absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DType to) {
  if (tensor.dtype == to) return tensor;
  if (!IsFloat(tensor.dtype) || !IsFloat(to)) {
    return ModelError("tensor ", tensor.name, ": cannot convert ",
                      Name(tensor.dtype), " to ", Name(to));
  }
  Tensor out;
  out.name = tensor.name;
  out.dtype = to;
  out.dims = tensor.dims;
  const int64_t n = tensor.bytes.size() / SizeOf(tensor.dtype);
  out.bytes.resize(n * SizeOf(to));
  for (int64_t i = 0; i < n; ++i) StoreFloat(LoadFloat(tensor, i), out, i);
  return out;
}

}  // namespace runtime
}  // namespace halftone
