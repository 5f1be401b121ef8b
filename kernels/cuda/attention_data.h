// What the kernels of attention read: heads of its operands, scores.
#ifndef HALFTONE_KERNELS_CUDA_ATTENTION_DATA_H_
#define HALFTONE_KERNELS_CUDA_ATTENTION_DATA_H_

#include <cstdint>

#include "kernels/common/attention.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/math.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {
namespace cuda {

// One head of one sample of a tensor [batch, length, heads, width].
struct HeadRows {
  DType dtype;
  const void* data;
  int64_t offset, stride, length, width;

  HT_DEVICE HeadRows(DType type, const void* tensor, int64_t sample,
                     int64_t head, int64_t rows, int64_t heads, int64_t each)
      : dtype(type),
        data(tensor),
        offset((sample * rows * heads + head) * each),
        stride(heads * each),
        length(rows),
        width(each) {}

  // 0 beyond its edges.
  HT_DEVICE float At(int64_t row, int64_t i) const {
    if (row >= length || i >= width) return 0.0f;
    return LoadOne(dtype, data, offset + row * stride + i);
  }
  HT_DEVICE void Set(void* to, int64_t row, int64_t i, float x) const {
    if (row >= length || i >= width) return;
    StoreOne(dtype, to, offset + row * stride + i, x);
  }
};

// What all kernels are given.
struct AttentionData {
  AttentionOp op;
  const void *q, *k, *v, *mask;
  const int64_t *seed, *step, *first_sample;  // null: no dropout

  static AttentionData Of(const AttentionOp& op, const Buffers& b) {
    const auto input = [&b](int i) { return i < 0 ? nullptr : b.inputs[i]; };
    const auto scalar = [&](int i) {
      return static_cast<const int64_t*>(op.drops() ? input(i) : nullptr);
    };
    return {op,
            b.inputs[0],
            b.inputs[1],
            b.inputs[2],
            input(op.mask),
            scalar(op.seed),
            scalar(op.step),
            scalar(op.first_sample)};
  }

  HT_DEVICE HeadRows Query(const void* tensor, int64_t sample, int64_t head,
                           int64_t width) const {
    return {op.dtype,      tensor,         sample, head,
            op.shape.rows, op.shape.heads, width};
  }
  HT_DEVICE HeadRows Key(const void* tensor, int64_t sample, int64_t kv,
                         int64_t width) const {
    return {op.dtype,          tensor, sample, kv, op.shape.columns,
            op.shape.kv_heads, width};
  }

  // The score of a product: scaled and masked; -infinity where the row must
  // not look, and outside.
  HT_DEVICE float Score(float product, int64_t sample, int64_t head,
                        int64_t row, int64_t column) const {
    const AttentionShape& s = op.shape;
    if (row >= s.rows || column >= s.ColumnsOf(row)) {
      return -functors::Infinity();
    }
    const float score = product * s.scale;
    if (mask == nullptr) return score;
    const int64_t at =
        s.MaskRow(sample, head, row) + column * s.mask_strides[3];
    if (op.mask_dtype == DType::kBool) {
      return static_cast<const bool*>(mask)[at] ? score : -functors::Infinity();
    }
    return score + LoadOne(op.mask_dtype, mask, at);
  }
};

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ATTENTION_DATA_H_
