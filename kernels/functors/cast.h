// Conversion of one element between any two dtypes.
#ifndef HALFTONE_KERNELS_FUNCTORS_CAST_H_
#define HALFTONE_KERNELS_FUNCTORS_CAST_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "graph/base/half.h"

namespace halftone {
namespace functors {

template <typename T>
struct IsStorageFloat
    : std::integral_constant<bool, std::is_same<T, half>::value ||
                                       std::is_same<T, bfloat16>::value> {};

// What arithmetic on T is done in.
template <typename T>
HT_HOST_DEVICE inline auto Widen(T x) {
  if constexpr (IsStorageFloat<T>::value) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

// Integers from floats: towards zero, saturating, 0 for a NaN.
template <typename To, typename From>
HT_HOST_DEVICE inline To Saturate(From x) {
  // Both bounds are exact in From or round outwards.
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From kHigh = static_cast<From>(std::numeric_limits<To>::max());
  if (!(x == x)) return 0;
  if (x <= kLow) return std::numeric_limits<To>::min();
  if (x >= kHigh) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

// Floats round to nearest even (f64 and integers to the 16-bit types by way
// of f32), integers to integers wrap, bool is x != 0.
template <typename To, typename From>
HT_HOST_DEVICE inline To Cast(From value) {
  const auto x = Widen(value);
  using X = typename std::remove_const<decltype(x)>::type;
  if constexpr (std::is_same<To, bool>::value) {
    return x != X(0);
  } else if constexpr (IsStorageFloat<To>::value) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point<X>::value &&
                       std::is_integral<To>::value) {
    return Saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_CAST_H_
