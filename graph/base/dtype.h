// Element types of tensors.
#ifndef HALFTONE_GRAPH_BASE_DTYPE_H_
#define HALFTONE_GRAPH_BASE_DTYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace halftone {

enum class DType : uint8_t {
  kInvalid = 0,
  kF32,
  kF16,
  kBF16,
  kF64,
  kI32,
  kI64,
  kU8,
  kBool,
};

// Bytes of one element; 0 for kInvalid.
int SizeOf(DType dtype);
// "f32", "f16", "bf16", "f64", "i32", "i64", "u8", "bool".
absl::string_view Name(DType dtype);
// Reads Name()'s words; also "F32" and Paddle's and numpy's ("float32",
// "fp16", "float16", "bfloat16", "int64", "uint8" ...), without case.
std::optional<DType> DTypeFromName(absl::string_view name);

constexpr bool IsFloat(DType d) {
  return d == DType::kF32 || d == DType::kF16 || d == DType::kBF16 ||
         d == DType::kF64;
}
// The 16-bit floating-point types.
constexpr bool IsLow(DType d) { return d == DType::kF16 || d == DType::kBF16; }

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_DTYPE_H_
