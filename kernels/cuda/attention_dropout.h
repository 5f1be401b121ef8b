// What dropout multiplies the weights of attention by. Where rows have whole
// blocks of four draws, each block is made once.
#ifndef HALFTONE_KERNELS_CUDA_ATTENTION_DROPOUT_H_
#define HALFTONE_KERNELS_CUDA_ATTENTION_DROPOUT_H_

#include <cstdint>

#include "graph/base/philox.h"
#include "kernels/cuda/attention_data.h"
#include "kernels/cuda/random.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Of one head of one sample. All lanes of a warp make the same calls.
class HeadDropout {
 public:
  HT_DEVICE HeadDropout(const AttentionData& data, int64_t sample, int64_t head)
      : data_(data), sample_(sample), head_(head) {}

  // Of the rows [row, row + 4) in this lane's column: that of the warp's first
  // lane, a multiple of 4, plus the lane.
  HT_DEVICE void OfRows(int64_t row, int64_t column, float (&keep)[4]) const {
    if (data_.seed == nullptr || data_.op.shape.columns % 4 != 0) {
      for (int i = 0; i < 4; ++i) keep[i] = Keep(row + i, column);
      return;
    }
    // Of four lanes with one block, each makes another row's.
    const int own = static_cast<int>(column % 4);
    const Philox4 draw = Draw(Element(row + own, column));
    Philox4 column_of;  // word k: of row `own` ^ k
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      column_of.x[k] = __shfl_xor_sync(0xffffffffu, WordOf(draw, own ^ k), k);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      keep[i] = data_.op.dropout(1.0f, WordOf(column_of, own ^ i));
    }
  }

  // Of the columns [column, column + 4), a multiple of 4, in this lane's row.
  HT_DEVICE void OfColumns(int64_t row, int64_t column,
                           float (&keep)[4]) const {
    if (data_.seed == nullptr || data_.op.shape.columns % 4 != 0) {
      for (int i = 0; i < 4; ++i) keep[i] = Keep(row, column + i);
      return;
    }
    const Philox4 draw = Draw(Element(row, column));
#pragma unroll
    for (int i = 0; i < 4; ++i) keep[i] = data_.op.dropout(1.0f, draw.x[i]);
  }

 private:
  // Among those of a sample.
  HT_DEVICE int64_t Element(int64_t row, int64_t column) const {
    const AttentionShape& s = data_.op.shape;
    return s.RowOf(0, head_, row) * s.columns + column;
  }
  // The block that an element's draw is in.
  HT_DEVICE Philox4 Draw(int64_t element) const {
    return PhiloxDraw(
        PhiloxKey(static_cast<uint64_t>(*data_.seed), data_.op.stream),
        static_cast<uint64_t>(*data_.step),
        static_cast<uint64_t>(*data_.first_sample + sample_),
        static_cast<uint32_t>(element / 4));
  }
  HT_DEVICE float Keep(int64_t row, int64_t column) const {
    if (data_.seed == nullptr) return 1.0f;
    const int64_t element = Element(row, column);
    return data_.op.dropout(1.0f, WordOf(Draw(element), element));
  }

  const AttentionData& data_;
  const int64_t sample_, head_;
};

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ATTENTION_DROPOUT_H_
