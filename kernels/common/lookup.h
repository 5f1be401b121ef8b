// What gathers, their gradient and scatters move: slices along one axis.
#ifndef HALFTONE_KERNELS_COMMON_LOOKUP_H_
#define HALFTONE_KERNELS_COMMON_LOOKUP_H_

#include <cstdint>

#include "graph/base/half.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// X is `outer` times `size` slices of `inner` elements, `count` of which are
// named.
struct LookupShape {
  int64_t outer = 1, size = 0, inner = 1, count = 0;
  int64_t padding = -1;   // gives zeros and gets nothing
  bool from_end = false;  // negative numbers count from the end

  // The slice that a number names; -1: there is none.
  HT_HOST_DEVICE int64_t SliceOf(int64_t index) const {
    if (from_end && index < 0) index += size;
    return index >= 0 && index < size ? index : -1;
  }
};
// Of lookup_table_v2, gather, index_select, gather_grad or scatter.
LookupShape LookupShapeOf(const BoundOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_LOOKUP_H_
