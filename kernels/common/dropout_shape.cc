#include "kernels/common/dropout_shape.h"

#include <algorithm>

#include "graph/base/layout.h"

namespace halftone {
namespace kernels {

DropoutShape DropoutShape::Of(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  const auto elements = [&x](int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; ++d) n *= std::max<int64_t>(1, x.dims[d]);
    return n;
  };
  const int drawn = op.KnowsAttr("axis")
                        ? static_cast<int>(op.Ints("axis").size())
                        : x.rank();
  DropoutShape shape;
  shape.sample = elements(1, x.rank());
  shape.draws = elements(1, drawn);
  // Pixels of channels_last: a channel's draw comes again with each.
  const bool channels_inmost = x.layout == Layout::kChannelsLast && drawn == 2;
  shape.run = channels_inmost ? 1 : shape.sample / shape.draws;
  return shape;
}

}  // namespace kernels
}  // namespace halftone
