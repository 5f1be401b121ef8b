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
  return CeilDiv(sums.workspace_floats(3), 64) * 64;
}

int Channels::VectorFor(bool aligned) const {
  int vector = aligned ? VectorOf({dtype}) : 1;
  const int64_t run = inner == 1 ? channels : inner;
  if (vector == 8 && run % 8 != 0) vector = 4;
  if (vector == 4 && run % 4 != 0) vector = 1;
  return vector;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
