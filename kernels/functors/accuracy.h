// For tests: how far a function is from the exact one.
#ifndef HALFTONE_KERNELS_FUNCTORS_ACCURACY_H_
#define HALFTONE_KERNELS_FUNCTORS_ACCURACY_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// Largest error in units of the last place over floats in [low, high], each
// `step`th bit pattern; where both are infinite or zero there is none. What is
// within `absolute` counts as none.
template <typename F, typename Exact>
double WorstUlps(F f, Exact exact, float low, float high, double absolute = 0,
                 uint64_t step = 1009) {
  double worst = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    const float x = FromBits(static_cast<uint32_t>(bits));
    if (!(x >= low && x <= high)) continue;
    const double expected = exact(static_cast<double>(x));
    const float rounded = static_cast<float>(expected);
    const float found = f(x);
    if (found == rounded) continue;
    if (!IsFinite(rounded) || !IsFinite(found)) return 1e9;
    const double ulp =
        rounded == 0
            ? 0x1p-149
            : std::max(0x1p-149, std::ldexp(1.0, std::ilogb(rounded) - 23));
    const double error =
        std::fabs(static_cast<double>(found) - expected) - absolute;
    worst = std::max(worst, error / ulp);
  }
  return worst;
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_ACCURACY_H_
