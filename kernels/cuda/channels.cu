#include "kernels/cuda/channels.h"

namespace halftone {
namespace kernels {
namespace cuda {

Channels::Channels(const TensorDesc& x)
    : dtype(x.dtype), rows(x.dims[0]), channels(x.dims[1]) {
  int64_t image = 1;
  for (int i = 2; i < x.rank(); ++i) image *= x.dims[i];
  (x.layout == Layout::kChannelsLast ? rows : inner) *= image;
  if (elements() == 0) {
    rows = 0;
    inner = 1;
  }
  sums = SumShape::OfChannels(rows, channels, inner, dtype);
}

int64_t Channels::sum_floats() const {
  return CeilDiv(sums.workspace_floats(2), 64) * 64;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
