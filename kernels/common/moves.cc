#include "kernels/common/moves.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "graph/base/layout.h"
#include "graph/ops/slice_ranges.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/strides.h"
#include "kernels/functors/cast.h"

namespace halftone {
namespace kernels {
namespace {

using ops::SliceRange;

// What a slice takes of each axis of `whole`.
std::vector<SliceRange> RangesOf(const BoundOp& op, const TensorDesc& whole) {
  std::vector<SliceRange> ranges;
  for (const int64_t dim : whole.dims) ranges.push_back({0, dim, 1});
  ops::SliceBounds bounds{
      op.Ints("axes"), op.Ints("starts"), op.Ints("ends"), {}};
  if (op.KnowsAttr("strides")) bounds.strides = op.Ints("strides");
  bounds.Complete();
  for (size_t k = 0; k < bounds.axes.size(); ++k) {
    const int64_t axis =
        bounds.axes[k] < 0 ? bounds.axes[k] + whole.rank() : bounds.axes[k];
    ranges[axis] = ops::RangeOf(bounds.starts[k], bounds.ends[k],
                                bounds.strides[k], whole.dims[axis]);
  }
  return ranges;
}

std::vector<AxisRead> ReadSlice(const BoundOp& op) {
  const TensorDesc& x = op.Input("Input");
  const Extents strides = StridesOf(x);
  std::vector<AxisRead> axes;
  const auto ranges = RangesOf(op, x);
  for (int i = 0; i < x.rank(); ++i) {
    const SliceRange& range = ranges[i];
    AxisRead axis;
    axis.extent = axis.size = range.count;
    axis.start = range.start;
    axis.step = range.stride;
    axis.stride = strides[i];
    axes.push_back(axis);
  }
  return axes;
}

std::vector<AxisRead> ReadPadLike(const BoundOp& op) {
  const TensorDesc& out = op.Output("Out");
  const auto ranges = RangesOf(op, out);
  std::vector<AxisRead> axes(out.rank());
  // X lies as Out; the axes that it lacks have one element.
  const Extents order = MemoryOrder(out);
  int64_t stride = 1;
  for (int k = out.rank() - 1; k >= 0; --k) {
    const int64_t i = order[k];
    const SliceRange& range = ranges[i];
    AxisRead& axis = axes[i];
    axis.extent = out.dims[i];
    axis.size = range.count;
    axis.stride = stride;
    stride *= range.count;
    axis.before = range.start;
    if (range.stride < 0) {  // the last element of X comes first
      axis.before += (range.count - 1) * range.stride;
      axis.start = range.count - 1;
      axis.step = -1;
    }
    axis.spread = range.stride < 0 ? -range.stride : range.stride;
  }
  return axes;
}

std::vector<AxisRead> ReadFlip(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const Extents strides = StridesOf(x);
  std::vector<AxisRead> axes(x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    axes[i].extent = axes[i].size = x.dims[i];
    axes[i].stride = strides[i];
  }
  for (const int64_t a : op.Ints("axis")) {
    AxisRead& axis = axes[a < 0 ? a + x.rank() : a];
    axis.start = axis.extent - 1;
    axis.step = -1;
  }
  return axes;
}

// Of X with ones before its dims.
std::vector<AxisRead> ReadRepeated(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const TensorDesc& out = op.Output("Out");
  const Extents strides = StridesOf(x);
  const int more = out.rank() - x.rank();
  std::vector<AxisRead> axes(out.rank());
  for (int i = 0; i < out.rank(); ++i) {
    axes[i].extent = out.dims[i];
    axes[i].size = i < more ? 1 : x.dims[i - more];
    axes[i].stride = i < more ? 0 : strides[i - more];
    axes[i].beyond = Beyond::kWrap;
    if (axes[i].size != 1) continue;
    axes[i].size = axes[i].extent;
    axes[i].step = 0;
  }
  return axes;
}

std::vector<AxisRead> ReadPad(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const Extents strides = StridesOf(x);
  std::vector<AxisRead> axes(x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    axes[i].extent = op.Output("Out").dims[i];
    axes[i].size = x.dims[i];
    axes[i].before = op.Ints("paddings")[2 * i];
    axes[i].stride = strides[i];
  }
  return axes;
}

bool IsWhole(const AxisRead& axis) {
  return axis.extent == axis.size && axis.before == 0 && axis.spread == 1 &&
         axis.start == 0 && axis.step == 1;
}
// Every index is the one element.
bool IsRepeated(const AxisRead& axis) {
  return axis.extent == axis.size && axis.before == 0 && axis.spread == 1 &&
         axis.start == 0 && axis.step == 0;
}

// Joins axes that are one to the reader.
std::vector<AxisRead> Joined(const std::vector<AxisRead>& axes) {
  std::vector<AxisRead> joined;
  for (const AxisRead& axis : axes) {
    if (axis.extent == 1 && axis.At(0) == 0) continue;
    if (!joined.empty()) {
      AxisRead& last = joined.back();
      const bool whole = IsWhole(last) && IsWhole(axis) &&
                         last.stride == axis.stride * axis.extent;
      if (whole || (IsRepeated(last) && IsRepeated(axis))) {
        last.extent *= axis.extent;
        last.size = last.extent;
        last.stride = axis.stride;
        continue;
      }
    }
    joined.push_back(axis);
  }
  if (joined.empty()) joined.push_back(AxisRead());
  return joined;
}

uint64_t FillBits(DType dtype, double value) {
  uint64_t bits = 0;
  DispatchType(AnyTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T fill = functors::Cast<T>(value);
    std::memcpy(&bits, &fill, sizeof(T));
  });
  return bits;
}

}  // namespace

int64_t Move::elements() const {
  int64_t n = 1;
  for (const AxisRead& axis : axes) n *= axis.extent;
  return n;
}

std::vector<AxisRead> PaddedAxes(const BoundOp& op, const TensorDesc& x,
                                 const TensorDesc& out) {
  const std::string& mode = op.Str("mode");
  const Extents strides = StridesOf(x);
  std::vector<AxisRead> axes(x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    AxisRead& axis = axes[i];
    axis.extent = out.dims[i];
    axis.size = x.dims[i];
    axis.stride = strides[i];
    if (i >= 2) axis.before = op.Ints("paddings")[2 * (4 - i)];
    axis.beyond = mode == "reflect"     ? Beyond::kReflect
                  : mode == "replicate" ? Beyond::kReplicate
                  : mode == "circular"  ? Beyond::kWrap
                                        : Beyond::kFill;
  }
  return axes;
}

Move MoveOf(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  Move move;
  move.size = SizeOf(out.dtype);
  if (op.type() == "slice" || op.type() == "strided_slice") {
    move.axes = ReadSlice(op);
  } else if (op.type() == "pad_like") {
    move.axes = ReadPadLike(op);
  } else if (op.type() == "flip") {
    move.axes = ReadFlip(op);
  } else if (op.type() == "pad") {
    move.axes = ReadPad(op);
    move.fill = FillBits(out.dtype, op.Float("pad_value"));
  } else if (op.type() == "pad3d") {
    move.axes = PaddedAxes(op, op.Input("X"), out);
    move.fill = FillBits(out.dtype, op.Float("value"));
  } else {
    move.axes = ReadRepeated(op);
  }
  if (out.layout == Layout::kChannelsLast) {  // a slice, or its gradient
    const std::vector<AxisRead> axes = move.axes;
    const Extents order = MemoryOrder(out);
    for (size_t k = 0; k < axes.size(); ++k) move.axes[k] = axes[order[k]];
  }
  move.axes = Joined(move.axes);
  return move;
}

}  // namespace kernels
}  // namespace halftone
