// What scaled_dot_product_attention and its gradient compute, whatever the
// device.
#ifndef HALFTONE_KERNELS_COMMON_ATTENTION_H_
#define HALFTONE_KERNELS_COMMON_ATTENTION_H_

#include <cstdint>

#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "kernels/bound_op.h"
#include "kernels/functors/dropout.h"

namespace halftone {
namespace kernels {

// Of Q [batch, rows, heads, width], K [batch, columns, kv_heads, width] and V
// [batch, columns, kv_heads, value_width].
struct AttentionShape {
  int64_t batch = 0, rows = 0, columns = 0, heads = 0, kv_heads = 0, width = 0,
          value_width = 0;
  // Elements of Mask between samples, heads, rows, columns; 0: the same one.
  int64_t mask_strides[4] = {};
  bool causal = false;
  float scale = 1;

  // Heads of Q that share one of K and V.
  HT_HOST_DEVICE int64_t group() const {
    return kv_heads == 0 ? 1 : heads / kv_heads;
  }
  // Columns that a row may look at, the mask aside: those before.
  HT_HOST_DEVICE int64_t ColumnsOf(int64_t row) const {
    return causal && row + 1 < columns ? row + 1 : columns;
  }
  // Where a row of a head begins in LogSumExp, scores or Mask.
  HT_HOST_DEVICE int64_t RowOf(int64_t sample, int64_t head,
                               int64_t row) const {
    return (sample * heads + head) * rows + row;
  }
  HT_HOST_DEVICE int64_t MaskRow(int64_t sample, int64_t head,
                                 int64_t row) const {
    return sample * mask_strides[0] + head * mask_strides[1] +
           row * mask_strides[2];
  }
};

// An op of the family as kernels see it: flat positions of its inputs, -1:
// none.
struct AttentionOp {
  AttentionShape shape;
  DType dtype{}, mask_dtype{};
  int mask = -1, out = -1, log_sum_exp = -1, out_grad = -1;
  int seed = -1, step = -1, first_sample = -1;
  // No dropout: p is 0.
  functors::DropoutOp dropout{};
  uint32_t stream = 0;

  bool drops() const { return dropout.Drops(); }

  static AttentionOp Of(const BoundOp& op);
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_ATTENTION_H_
