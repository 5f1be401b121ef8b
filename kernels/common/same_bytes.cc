#include "kernels/common/same_bytes.h"

#include "graph/base/layout.h"
#include "kernels/common/shapes.h"
#include "kernels/common/strides.h"

namespace halftone {
namespace kernels {

bool KeepsBytes(const BoundOp& view) {
  const TensorDesc &in = view.inputs()[0], &out = view.outputs()[0];
  if (view.type() == "move_channels") {
    return MakeNest(out, TransposedStrides(view)).contiguous();
  }
  if (in.dims == out.dims) return MakeNest(out, StridesOf(in)).contiguous();
  return in.layout == Layout::kRowMajor && out.layout == Layout::kRowMajor;
}

}  // namespace kernels
}  // namespace halftone
