#include "graph/schema/paddle_dtypes.h"

#include <utility>

#include "graph/base/check.h"

namespace halftone {
namespace {

constexpr std::pair<int, DType> kNumbers[] = {
    {0, DType::kBool}, {2, DType::kI32}, {3, DType::kI64}, {4, DType::kF16},
    {5, DType::kF32},  {6, DType::kF64}, {20, DType::kU8}, {22, DType::kBF16},
};

}  // namespace

std::optional<DType> DTypeFromPaddle(int64_t number) {
  for (const auto& [known, dtype] : kNumbers) {
    if (known == number) return dtype;
  }
  return std::nullopt;
}

int PaddleNumberOf(DType dtype) {
  for (const auto& [number, known] : kNumbers) {
    if (known == dtype) return number;
  }
  HT_CHECK(false, "a value without a dtype");
}

}  // namespace halftone
