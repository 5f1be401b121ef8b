// What layer_norm, rms_norm, group_norm and instance_norm normalise, whatever
// the device.
#ifndef HALFTONE_KERNELS_COMMON_ROW_NORM_H_
#define HALFTONE_KERNELS_COMMON_ROW_NORM_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/attributes.h"
#include "graph/base/half.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// `rows` rows of [channels][inner] elements, one behind the other. A channel
// has one scale and bias; `period` rows in turn have their own.
struct RowNormShape {
  int64_t rows = 0, period = 1, channels = 0, inner = 1;

  HT_HOST_DEVICE int64_t length() const { return channels * inner; }
  // Of scale and bias.
  HT_HOST_DEVICE int64_t affine() const { return period * channels; }
  // Where those of a row begin. Mostly at 0: a division is as long as a row.
  HT_HOST_DEVICE int64_t AffineOf(int64_t row) const {
    return period == 1 ? 0 : row % period * channels;
  }
  // Whether all rows have the same scales, one for each element.
  HT_HOST_DEVICE bool by_element() const { return period == 1 && inner == 1; }

  // visit(channel of the row, begin, end) for the elements [i, i + n) of a row;
  // `begin` and `end` count from i on.
  template <typename Visit>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void ForChannels(int64_t i, int64_t n,
                                                const Visit& visit) const {
    int64_t channel = i / inner;
    int64_t end = std::min(n, inner - i % inner);
    for (int64_t begin = 0; begin < n; ++channel) {
      visit(channel, begin, end);
      begin = end;
      end = std::min(n, end + inner);
    }
  }

  static RowNormShape Of(const BoundOp& op);
};

// A member of the family as kernels see it: positions of slots, -1: none.
struct RowNormOp {
  RowNormShape shape;
  float epsilon;
  bool centered;  // about the mean; else about 0
  int scale, bias;
  int mean, variance;         // outputs of the op, inputs of its gradient
  int scale_grad, bias_grad;  // outputs of the gradient

  static RowNormOp Forward(const BoundOp& op);
  static RowNormOp Backward(const BoundOp& op);
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_ROW_NORM_H_
