#include "kernels/cpu/conv_phases.h"

#include <algorithm>
#include <utility>

namespace halftone {
namespace kernels {

std::vector<Phase> PhasesOf(const ConvDim& dim, bool forward) {
  std::vector<Phase> phases;
  if (forward) {
    Phase all;
    all.count = dim.result;
    all.source_step = dim.stride;
    for (int64_t tap = 0; tap < dim.filter; ++tap) {
      all.taps.push_back(tap);
      all.at.push_back(dim.At(0, tap));
    }
    return {all};
  }
  for (int64_t first = 0; first < std::min(dim.stride, dim.image); ++first) {
    Phase phase;
    phase.first = first;
    phase.step = dim.stride;
    phase.count = (dim.image - first + dim.stride - 1) / dim.stride;
    for (int64_t tap = dim.filter - 1; tap >= 0; --tap) {
      const int64_t shifted = first + dim.before - tap * dim.dilation;
      if (shifted % dim.stride != 0) continue;
      phase.taps.push_back(tap);
      phase.at.push_back(shifted / dim.stride);
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace kernels
}  // namespace halftone
