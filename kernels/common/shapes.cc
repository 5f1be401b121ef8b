#include "kernels/common/shapes.h"

#include <algorithm>

#include "graph/base/channel_axes.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "graph/ops/infer_helpers.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {

int InputOf(const BoundOp& op, absl::string_view slot) {
  return op.schema().FindInput(slot) < 0 ? -1 : op.InputIndex(slot);
}

int OutputOf(const BoundOp& op, absl::string_view slot) {
  return op.schema().FindOutput(slot) < 0 ? -1 : op.OutputIndex(slot);
}

bool HasOneLayout(const BoundOp& op) {
  const Layout lead = op.inputs()[0].layout;
  for (const TensorDesc& x : op.inputs()) {
    if (x.rank() == 4 && x.layout != lead) return false;
  }
  for (const TensorDesc& x : op.outputs()) {
    if (x.rank() == 4 && x.layout != lead) return false;
  }
  return true;
}

bool MembersShareLayout(const BoundOp& op) {
  const auto params = op.inputs().subspan(0, op.InputCount("Param"));
  const auto same = [&](absl::Span<const TensorDesc> values, int first,
                        int count) {
    for (int i = 0; i < count; ++i) {
      if (values[first + i].layout != params[i].layout) return false;
    }
    return true;
  };
  for (const Slot& slot : op.schema().inputs()) {
    if (slot.list() && !same(op.inputs(), op.InputIndex(slot.name),
                             op.InputCount(slot.name))) {
      return false;
    }
  }
  for (const Slot& slot : op.schema().outputs()) {
    if (!same(op.outputs(), op.OutputIndex(slot.name),
              op.OutputCount(slot.name))) {
      return false;
    }
  }
  return true;
}

RowShape RowShape::Along(const TensorDesc& desc, int64_t axis) {
  if (axis < 0) axis += desc.rank();
  RowShape rows;
  rows.length = desc.dims[axis];
  for (int i = static_cast<int>(axis) + 1; i < desc.rank(); ++i) {
    rows.stride *= desc.dims[i];
  }
  rows.count = rows.length == 0 ? 0 : desc.elements() / rows.length;
  return rows;
}

Around AroundAxis(const TensorDesc& desc, int64_t axis) {
  if (axis < 0) axis += desc.rank();
  Around around;
  around.slice = SizeOf(desc.dtype);
  bool met = false;
  for (const int64_t i : MemoryOrder(desc)) {
    if (i == axis) {
      around.extent = desc.dims[i];
      met = true;
    } else {
      (met ? around.slice : around.outer) *= desc.dims[i];
    }
  }
  return around;
}

int64_t SliceStart(const BoundOp& op) {
  const int64_t extent = AroundAxis(op.Input("X"), op.Int("axis")).extent;
  int64_t start = op.Int("start");
  if (start < 0) start += extent;
  return std::min(std::max<int64_t>(start, 0), extent);
}

std::vector<bool> ReducedAxes(const BoundOp& op, int rank) {
  if (!op.KnowsAttr("dim")) return std::vector<bool>(rank, true);
  const bool all = op.KnowsAttr("reduce_all") && op.Bool("reduce_all");
  return *ops::ReducedAxes(op.Ints("dim"), all, rank);  // the schema checked
}

Extents ReductionOrder(const TensorDesc& x, const TensorDesc& out,
                       const std::vector<bool>& reduced) {
  const auto kept = [&](const Extents& order) {
    Extents result;
    for (const int64_t i : order) {
      if (!reduced[i] && x.dims[i] != 1) result.push_back(i);
    }
    return result;
  };
  // Reduced dims stay, or the others follow each other as they are named.
  const TensorDesc names{x.dtype, Layout::kRowMajor, x.dims};
  const Extents wanted = MemoryOrder(out.rank() == x.rank() ? out : names);
  const Extents own = MemoryOrder(x);
  return kept(own) == kept(wanted) ? own : wanted;
}

BroadcastLike BroadcastLikeOf(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const TensorDesc& out = op.Output("Out");
  const std::vector<bool> repeated = ReducedAxes(op, out.rank());
  const Extents own = StridesOf(x);
  BroadcastLike like{Extents(out.rank(), 0)};
  int next = 0;  // the dim of x that goes with the next dim of out
  for (int i = 0; i < out.rank(); ++i) {
    if (!repeated[i]) {
      like.strides[i] = own[next++];
    } else if (op.Bool("keep_dim")) {
      ++next;
    }
  }
  if (op.Bool("mean") && x.elements() > 0 && out.elements() > 0) {
    like.divisor = static_cast<float>(out.elements() / x.elements());
  }
  return like;
}

ChannelPadding ChannelPaddingOf(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const Extents strides = StridesOf(x);
  // Rows follow each other in either layout.
  return {x.dims[0],  x.dims[1],  x.dims[2] * x.dims[3], strides[0],
          strides[1], strides[3], op.Int("channels")};
}

namespace {

std::vector<int64_t> AxisOf(const BoundOp& op) {
  if (op.type() == "transpose") return op.Ints("axis");
  const bool rows = op.Str("to") == Name(Layout::kRowMajor);
  return ChannelAxes(rows ? Layout::kRowMajor : Layout::kChannelsLast);
}

}  // namespace

Extents TransposedStrides(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const Extents own = StridesOf(x);
  Extents strides;
  for (int64_t axis : AxisOf(op)) {
    strides.push_back(own[axis < 0 ? axis + x.rank() : axis]);
  }
  return strides;
}

PermutedView ShuffledViewOf(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const TensorDesc& out = op.Output("Out");
  const Extents own = StridesOf(x);
  const int64_t factor = op.Int("upscale_factor");
  PermutedView view;
  view.out = out;
  if (op.type() == "pixel_shuffle") {
    view.out.dims = {out.dims[0], out.dims[1], x.dims[2],
                     factor,      x.dims[3],   factor};
    view.strides = {own[0], factor * factor * own[1],
                    own[2], factor * own[1],
                    own[3], own[1]};
  } else {
    view.out.dims = {out.dims[0], x.dims[1],   factor,
                     factor,      out.dims[2], out.dims[3]};
    view.strides = {own[0], own[1],          own[2],
                    own[3], factor * own[2], factor * own[3]};
  }
  return view;
}

std::pair<Extents, Extents> BinaryStrides(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  const TensorDesc& y = op.inputs()[1];
  const TensorDesc& out = op.Output("Out");
  const int64_t axis = op.schema().FindAttr("axis") >= 0
                           ? op.Int("axis")
                           : ops::AlphaAxis(op.Str("mode"), y.rank());
  const int x_first = axis == -1 ? out.rank() - x.rank() : 0;
  const int y_first = FirstAlignedDim(y.rank(), out.rank(), axis);
  return {BroadcastStrides(x, out, x_first), BroadcastStrides(y, out, y_first)};
}

}  // namespace kernels
}  // namespace halftone
