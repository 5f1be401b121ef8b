#include "runtime/exec/host_tensor.h"

#include <cmath>
#include <cstring>

#include "graph/base/dtype.h"
#include "graph/base/half.h"

namespace halftone {
namespace runtime {
namespace {

template <typename T>
double Load(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * sizeof(T),
              sizeof(T));
  if constexpr (sizeof(T) == 2) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

double Element(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::kF32:
      return Load<float>(data, i);
    case DType::kF16:
      return Load<half>(data, i);
    case DType::kBF16:
      return Load<bfloat16>(data, i);
    case DType::kF64:
      return Load<double>(data, i);
    case DType::kI32:
      return Load<int32_t>(data, i);
    case DType::kI64:
      return Load<int64_t>(data, i);
    case DType::kU8:
    case DType::kBool:
      return Load<uint8_t>(data, i);
    case DType::kInvalid:
      break;
  }
  return 0;
}

template <typename T>
void Append(std::string& bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

// Copies element (n, c, p) of [N, C, P] to (n, p, c) or back.
std::string Reorder(const kernels::TensorDesc& desc, absl::string_view from,
                    bool to_row_major) {
  if (desc.layout == Layout::kRowMajor || desc.rank() != 4) {
    return std::string(from);
  }
  const int64_t size = SizeOf(desc.dtype);
  const int64_t channels = desc.dims[1], pixels = desc.dims[2] * desc.dims[3];
  std::string to(from.size(), '\0');
  for (int64_t n = 0; n < desc.dims[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t row_major = (n * channels + c) * pixels + p;
        const int64_t last = (n * pixels + p) * channels + c;
        const int64_t source = to_row_major ? last : row_major;
        const int64_t target = to_row_major ? row_major : last;
        std::memcpy(&to[target * size], from.data() + source * size, size);
      }
    }
  }
  return to;
}

}  // namespace

double FirstElement(DType dtype, const void* data) {
  return Element(dtype, data, 0);
}

bool AllFinite(DType dtype, const void* data, int64_t elements) {
  if (!IsFloat(dtype)) return true;
  for (int64_t i = 0; i < elements; ++i) {
    if (!std::isfinite(Element(dtype, data, i))) return false;
  }
  return true;
}

std::string ConstantBytes(const Constant& constant) {
  std::string bytes;
  for (double value : constant.values) {
    switch (constant.type.dtype) {
      case DType::kF32:
        Append(bytes, static_cast<float>(value));
        break;
      case DType::kF16:
        Append(bytes, half(static_cast<float>(value)));
        break;
      case DType::kBF16:
        Append(bytes, bfloat16(static_cast<float>(value)));
        break;
      case DType::kF64:
        Append(bytes, value);
        break;
      case DType::kI32:
        Append(bytes, static_cast<int32_t>(value));
        break;
      case DType::kI64:
        Append(bytes, static_cast<int64_t>(value));
        break;
      case DType::kU8:
      case DType::kBool:
        Append(bytes, static_cast<uint8_t>(value));
        break;
      case DType::kInvalid:
        break;
    }
  }
  return bytes;
}

std::string ToRowMajor(const kernels::TensorDesc& desc,
                       absl::string_view physical) {
  return Reorder(desc, physical, /*to_row_major=*/true);
}

std::string FromRowMajor(const kernels::TensorDesc& desc,
                         absl::string_view logical) {
  return Reorder(desc, logical, /*to_row_major=*/false);
}

}  // namespace runtime
}  // namespace halftone
