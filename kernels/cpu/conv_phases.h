// What the windows of a convolution or of the gradient of its image see, along
// one dim.
#ifndef HALFTONE_KERNELS_CPU_CONV_PHASES_H_
#define HALFTONE_KERNELS_CPU_CONV_PHASES_H_

#include <cstdint>
#include <vector>

#include "kernels/common/conv_shape.h"

namespace halftone {
namespace kernels {

// Positions first, first + step ... of the result along a dim; the i-th sees
// with `taps`[t] position i * source_step + at[t] of the source.
struct Phase {
  int64_t first = 0, step = 1, count = 0;
  int64_t source_step = 1;
  std::vector<int64_t> taps, at;  // in the order of `at`

  int64_t SourceEnd() const {
    return (count - 1) * source_step + at.back() + 1;
  }
  // Whether a line of taps is a line of the source.
  bool IsDense() const {
    return at.empty() ||
           at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
  }
};

// Of a forward convolution, all positions; of a gradient, those a stride apart
// are a phase.
std::vector<Phase> PhasesOf(const ConvDim& dim, bool forward);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_CONV_PHASES_H_
