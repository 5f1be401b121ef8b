#include "kernels/common/same_bytes.h"

#include "graph/base/layout.h"
#include "kernels/common/strides.h"

namespace halftone {
namespace kernels {

bool HaveSameBytes(const TensorDesc& in, const TensorDesc& out) {
  if (in.dims == out.dims) return MakeNest(out, StridesOf(in)).contiguous();
  return in.layout == Layout::kRowMajor && out.layout == Layout::kRowMajor;
}

}  // namespace kernels
}  // namespace halftone
