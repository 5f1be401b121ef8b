// What reductions fold and compare, of any type of number.
#ifndef HALFTONE_KERNELS_FUNCTORS_REDUCTION_H_
#define HALFTONE_KERNELS_FUNCTORS_REDUCTION_H_

#include <limits>
#include <type_traits>

#include "kernels/functors/math.h"
#include "kernels/functors/power.h"

namespace halftone {
namespace functors {

// A NaN of either stays; integers have none.
struct GreaterOf {
  template <typename T>
  HT_HOST_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral<T>::value) {
      return x > y ? x : y;
    } else {
      return Greater(x, y);
    }
  }
  template <typename T>
  static HT_HOST_DEVICE T None() {
    if constexpr (std::is_integral<T>::value) {
      return std::numeric_limits<T>::min();
    } else {
      return -Infinity();
    }
  }
};
struct LesserOf {
  template <typename T>
  HT_HOST_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral<T>::value) {
      return x < y ? x : y;
    } else {
      return Lesser(x, y);
    }
  }
  template <typename T>
  static HT_HOST_DEVICE T None() {
    if constexpr (std::is_integral<T>::value) {
      return std::numeric_limits<T>::max();
    } else {
      return Infinity();
    }
  }
};
// Integers wrap.
struct ProductOf {
  template <typename T>
  HT_HOST_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_integral<T>::value) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(x) *
                            static_cast<Unsigned>(y));
    } else {
      return x * y;
    }
  }
  template <typename T>
  static HT_HOST_DEVICE T None() {
    return T(1);
  }
};

// 1 where x is not 0 (a NaN is not), else 0.
struct NotZeroOp {
  HT_HOST_DEVICE float operator()(float x) const {
    return x != 0.0f ? 1.0f : 0.0f;
  }
};
// Near, IsNear: see PowOp.
struct AbsPowerOp {
  float order;
  HT_HOST_DEVICE bool IsNear(float x) const {
    return power_internal::IsNear(Abs(x), order);
  }
  HT_HOST_DEVICE float Near(float x) const {
    return power_internal::InDouble::Near(Abs(x), order);
  }
  HT_HOST_DEVICE float operator()(float x) const { return Pow(Abs(x), order); }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_REDUCTION_H_
