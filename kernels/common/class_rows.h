// Labels and the scores that they choose from.
#ifndef HALFTONE_KERNELS_COMMON_CLASS_ROWS_H_
#define HALFTONE_KERNELS_COMMON_CLASS_ROWS_H_

#include <cstdint>

#include "graph/base/half.h"
#include "kernels/common/shapes.h"

namespace halftone {
namespace kernels {

// Scores [outer][classes][inner], a label for each [outer][inner].
struct ClassRows {
  int64_t outer = 0, classes = 0, inner = 1;

  static ClassRows Of(const TensorDesc& scores, int64_t axis) {
    const RowShape rows = RowShape::Along(scores, axis);
    return {rows.stride == 0 ? 0 : rows.count / rows.stride, rows.length,
            rows.stride};
  }
  HT_HOST_DEVICE int64_t count() const { return outer * inner; }
  HT_HOST_DEVICE int64_t Offset(int64_t row, int64_t label) const {
    return (row / inner * classes + label) * inner + row % inner;
  }
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_CLASS_ROWS_H_
