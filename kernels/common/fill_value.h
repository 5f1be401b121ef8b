// What a fill_constant fills with.
#ifndef HALFTONE_KERNELS_COMMON_FILL_VALUE_H_
#define HALFTONE_KERNELS_COMMON_FILL_VALUE_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "kernels/bound_op.h"
#include "kernels/functors/cast.h"

namespace halftone {
namespace kernels {

// Digits of an integer are no detour by way of f64, which has 53 bits.
template <typename T>
T FillValue(const BoundOp& op) {
  const std::string& digits = op.Str("str_value");
  if constexpr (std::is_integral_v<T>) {
    int64_t whole = 0;
    if (absl::SimpleAtoi(digits, &whole)) return functors::Cast<T>(whole);
  }
  double value = op.Float("value");
  if (!digits.empty()) (void)absl::SimpleAtod(digits, &value);  // Infer looked
  return functors::Cast<T>(value);
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_FILL_VALUE_H_
