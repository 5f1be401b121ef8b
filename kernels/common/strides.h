// Strides of tensors in memory and loop nests over them.
#ifndef HALFTONE_KERNELS_COMMON_STRIDES_H_
#define HALFTONE_KERNELS_COMMON_STRIDES_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

using Extents = absl::InlinedVector<int64_t, 6>;

// The logical dims in memory order, outermost first.
Extents MemoryOrder(const TensorDesc& desc);

// The stride of each logical dim, in elements, in the tensor's layout.
Extents StridesOf(const TensorDesc& desc);

// The strides with which an operand is read along the dims of an output that
// it broadcasts to: its dims go with out's dims from `first` on (dims of 1 at
// its end that do not fit are left out); 0 where it repeats.
Extents BroadcastStrides(const TensorDesc& operand, const TensorDesc& out,
                         int first);
// Where an operand's dim 0 lies in an output of rank `out_rank`, by the `axis`
// of element-wise ops.
int FirstAlignedDim(int operand_rank, int out_rank, int64_t axis);

// Loops in the memory order of one tensor that say where in another each
// element is. Dims of 1 are left out, neighbours that move together are
// merged; an empty nest is a single element.
struct Nest {
  Extents dims, strides;  // outermost first

  int rank() const { return static_cast<int>(dims.size()); }
  bool contiguous() const {
    return rank() == 0 || (rank() == 1 && strides[0] == 1);
  }
};
// `strides`: the other tensor's, per logical dim of `out`.
Nest MakeNest(const TensorDesc& out, const Extents& strides);

// A position in a nest: walks its rows (runs of the innermost dim).
class NestWalk {
 public:
  // Starts at flat position `begin` of the nest, in its own order.
  NestWalk(const Nest& nest, int64_t begin);

  // Offset in the other tensor of the current position.
  int64_t offset() const { return offset_; }
  // Elements left in the current row.
  int64_t row_left() const { return row_ - index_.back(); }
  // Goes on by n <= row_left() elements.
  void Advance(int64_t n);

 private:
  const Nest& nest_;
  Extents index_;
  int64_t row_ = 1;
  int64_t offset_ = 0;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_STRIDES_H_
