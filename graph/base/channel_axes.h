// Where move_channels puts the dims of an image; the transpose that it stands
// for has these axes.
#ifndef HALFTONE_GRAPH_BASE_CHANNEL_AXES_H_
#define HALFTONE_GRAPH_BASE_CHANNEL_AXES_H_

#include <cstdint>
#include <vector>

#include "graph/base/layout.h"

namespace halftone {

// Dim i of the result is dim axes[i] of what is read: of [N, C, H, W] a
// row-major [N, H, W, C], of that a channels-last [N, C, H, W].
inline std::vector<int64_t> ChannelAxes(Layout to) {
  if (to == Layout::kRowMajor) return {0, 2, 3, 1};
  return {0, 3, 1, 2};
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_CHANNEL_AXES_H_
