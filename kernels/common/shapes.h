// What shapes and attributes mean to kernels, whatever the device.
#ifndef HALFTONE_KERNELS_COMMON_SHAPES_H_
#define HALFTONE_KERNELS_COMMON_SHAPES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/half.h"
#include "kernels/bound_op.h"
#include "kernels/common/strides.h"

namespace halftone {
namespace kernels {

// As BoundOp's InputIndex and OutputIndex, and -1 also where ops of this type
// have no such slot.
int InputOf(const BoundOp& op, absl::string_view slot);
int OutputOf(const BoundOp& op, absl::string_view slot);

// Whether all tensors of rank 4 lie as the first input does: the `supports`
// of kernels whose loops want it.
bool HasOneLayout(const BoundOp& op);

// Whether parameter, gradient, slots and low copy of an update lie in the
// same order, member by member.
bool MembersShareLayout(const BoundOp& op);

// Rows along one axis of a row-major tensor: `count` rows of `length`, their
// elements `stride` apart.
struct RowShape {
  int64_t count = 0, length = 0, stride = 1;

  // `axis` may be negative.
  static RowShape Along(const TensorDesc& desc, int64_t axis);
  // Of a row's first element.
  HT_HOST_DEVICE int64_t Offset(int64_t row) const {
    return row / stride * length * stride + row % stride;
  }
};

// A tensor around one axis, in bytes: `outer` rows of `extent` slices.
struct Around {
  int64_t outer = 1, extent = 1, slice = 1;
  int64_t row() const { return extent * slice; }
};
// `axis` may be negative.
Around AroundAxis(const TensorDesc& desc, int64_t axis);

// The index at which a `slice` begins.
int64_t SliceStart(const BoundOp& op);

// The axes of a tensor of `rank` dims that the `dim` and `reduce_all` of a
// reduction or its gradient name; without these attributes all.
std::vector<bool> ReducedAxes(const BoundOp& op, int rank);

// The dims of X in the order in which a reduction goes through them, outermost
// first: those that are kept come as they lie in Out, and all as they lie in X
// wherever that allows it.
Extents ReductionOrder(const TensorDesc& x, const TensorDesc& out,
                       const std::vector<bool>& reduced);

// How broadcast_like reads X: strides per dim of Out, and by what it divides.
struct BroadcastLike {
  Extents strides;
  float divisor = 1.0f;
};
BroadcastLike BroadcastLikeOf(const BoundOp& op);

// How pad_channels reads X: by image, channel and pixel.
struct ChannelPadding {
  int64_t images, channels, pixels;  // of X
  int64_t image_stride, channel_stride, pixel_stride;
  int64_t padded;  // channels of Out, which lie side by side
};
ChannelPadding ChannelPaddingOf(const BoundOp& op);

// Strides of X per dim of the Out of transpose or move_channels.
Extents TransposedStrides(const BoundOp& op);

// An output, its dims cut into as many as it takes, and the strides of X per
// each of them.
struct PermutedView {
  TensorDesc out;
  Extents strides;
};
// Of pixel_shuffle or pixel_unshuffle.
PermutedView ShuffledViewOf(const BoundOp& op);

// Strides of both operands of a binary op per dim of its Out.
std::pair<Extents, Extents> BinaryStrides(const BoundOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_SHAPES_H_
