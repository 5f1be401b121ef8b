// Sums over ranks.
#ifndef HALFTONE_KERNELS_FUNCTORS_COLLECTIVE_H_
#define HALFTONE_KERNELS_FUNCTORS_COLLECTIVE_H_

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// An element's f32 sum in the order of the ranks.
struct RankSum {
  float scale;
  HT_HOST_DEVICE float First(float x) const { return scale * x; }
  HT_HOST_DEVICE float Next(float sum, float x) const {
    return sum + scale * x;
  }
  bool in_tree = false;  // instead, as SumInTree adds
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_COLLECTIVE_H_
