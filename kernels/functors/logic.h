// Comparisons and logical functions of two values of one type. NaNs compare as
// IEEE 754 says: they equal nothing, themselves neither.
#ifndef HALFTONE_KERNELS_FUNCTORS_LOGIC_H_
#define HALFTONE_KERNELS_FUNCTORS_LOGIC_H_

#include "graph/base/half.h"

namespace halftone {
namespace functors {

struct EqualOp {
  template <typename T>
  HT_HOST_DEVICE bool operator()(T x, T y) const {
    return x == y;
  }
};
struct NotEqualOp {
  template <typename T>
  HT_HOST_DEVICE bool operator()(T x, T y) const {
    return x != y;
  }
};
struct LessOp {
  template <typename T>
  HT_HOST_DEVICE bool operator()(T x, T y) const {
    return x < y;
  }
};
struct LessEqualOp {
  template <typename T>
  HT_HOST_DEVICE bool operator()(T x, T y) const {
    return x <= y;
  }
};
struct AndOp {
  template <typename T>
  HT_HOST_DEVICE bool operator()(T x, T y) const {
    return (x != T(0)) & (y != T(0));
  }
};
struct OrOp {
  template <typename T>
  HT_HOST_DEVICE bool operator()(T x, T y) const {
    return (x != T(0)) | (y != T(0));
  }
};
struct XorOp {
  template <typename T>
  HT_HOST_DEVICE bool operator()(T x, T y) const {
    return (x != T(0)) != (y != T(0));
  }
};

// Which functor computes which op, on every device: greater_than is less_than
// of swapped operands.
template <typename Visit>
void ForEachPredicate(const Visit& visit) {
  visit("equal", EqualOp(), false);
  visit("not_equal", NotEqualOp(), false);
  visit("less_than", LessOp(), false);
  visit("less_equal", LessEqualOp(), false);
  visit("greater_than", LessOp(), true);
  visit("greater_equal", LessEqualOp(), true);
  visit("logical_and", AndOp(), false);
  visit("logical_or", OrOp(), false);
  visit("logical_xor", XorOp(), false);
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_LOGIC_H_
