#include "graph/base/dtype.h"

#include "absl/strings/match.h"

namespace halftone {
namespace {

struct Spelling {
  absl::string_view word;
  DType dtype;
};
// The first spelling of a type is its printed name.
constexpr Spelling kSpellings[] = {
    {"f32", DType::kF32},       {"f16", DType::kF16},
    {"bf16", DType::kBF16},     {"f64", DType::kF64},
    {"i32", DType::kI32},       {"i64", DType::kI64},
    {"u8", DType::kU8},         {"bool", DType::kBool},
    {"float32", DType::kF32},   {"fp32", DType::kF32},
    {"float16", DType::kF16},   {"fp16", DType::kF16},
    {"bfloat16", DType::kBF16}, {"float64", DType::kF64},
    {"int32", DType::kI32},     {"int64", DType::kI64},
    {"uint8", DType::kU8},
};

}  // namespace

int SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kInvalid:
      return 0;
    case DType::kU8:
    case DType::kBool:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
  }
  return 0;
}

absl::string_view Name(DType dtype) {
  for (const Spelling& s : kSpellings) {
    if (s.dtype == dtype) return s.word;
  }
  return "invalid";
}

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (const Spelling& s : kSpellings) {
    if (absl::EqualsIgnoreCase(s.word, name)) return s.dtype;
  }
  return std::nullopt;
}

}  // namespace halftone
