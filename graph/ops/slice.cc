// Parts of one tensor: slices with and without strides, their gradient, flips.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/shape_schema.h"
#include "graph/ops/slice_ranges.h"

namespace halftone {
namespace ops {
namespace {

// The axis of `dims` that the k-th of `axes` names.
absl::StatusOr<int> AxisOfSlice(const InferContext& c, int64_t axis,
                                const std::vector<bool>& cut) {
  const int rank = static_cast<int>(cut.size());
  if (axis >= -rank && axis < rank && !cut[axis < 0 ? axis + rank : axis]) {
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
  return AttrMismatch(c, "axes",
                      rank == 0 ? "[] for a scalar"
                                : absl::StrCat("different axes from ", -rank,
                                               " to ", rank - 1));
}

// As many bounds as axes, strides other than 0.
absl::StatusOr<SliceBounds> BoundsOf(const InferContext& c) {
  SliceBounds bounds{c.Ints("axes"), c.Ints("starts"), c.Ints("ends"), {}};
  if (c.schema().FindAttr("strides") >= 0) bounds.strides = c.Ints("strides");
  bounds.Complete();
  const size_t count = bounds.axes.size();
  const auto expect = [&](const char* attr,
                          const std::vector<int64_t>& values) {
    if (values.size() == count) return absl::OkStatus();
    return AttrMismatch(c, attr,
                        absl::StrCat(count, " integers, one for each axis"));
  };
  HT_RETURN_IF_ERROR(expect("starts", bounds.starts));
  HT_RETURN_IF_ERROR(expect("ends", bounds.ends));
  if (bounds.strides.size() != count) {
    HT_RETURN_IF_ERROR(expect("strides", bounds.strides));
  }
  for (const int64_t stride : bounds.strides) {
    if (stride == 0 || stride < -kToTheEnd || stride > kToTheEnd) {
      return AttrMismatch(c, "strides", "strides other than 0");
    }
  }
  return bounds;
}

// The dims that are left after a cut: without those of decrease_axis.
absl::StatusOr<Dims> Decreased(const InferContext& c, const Dims& dims) {
  std::vector<bool> dropped(dims.size(), false);
  const int rank = static_cast<int>(dims.size());
  for (int64_t axis : c.Ints("decrease_axis")) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || dims[axis] != Dim(1)) {
      return AttrMismatch(
          c, "decrease_axis", "axes of which one element is left",
          absl::StrCat("after the cut the dims are ", PrintDims(c, dims)));
    }
    dropped[axis] = true;
  }
  return ReduceDims(dims, dropped, false);
}

// The dims of a slice of `whole`, which is in `slot`.
absl::StatusOr<Dims> SlicedDims(const InferContext& c, absl::string_view slot) {
  HT_ASSIGN_OR_RETURN(const SliceBounds bounds, BoundsOf(c));
  Dims out = c.Input(slot).dims;
  std::vector<bool> cut(out.size(), false);
  for (size_t k = 0; k < bounds.axes.size(); ++k) {
    HT_ASSIGN_OR_RETURN(const int axis, AxisOfSlice(c, bounds.axes[k], cut));
    cut[axis] = true;
    const int64_t start = bounds.starts[k], end = bounds.ends[k];
    const int64_t stride = bounds.strides[k];
    if (out[axis].is_constant()) {
      out[axis] =
          Dim(RangeOf(start, end, stride, out[axis].coefficient()).count);
    } else if (!IsWhole(start, end, stride)) {
      return SlotMismatch(c, slot, absl::StrCat("a constant dim ", axis),
                          "a symbolic dim can only be taken whole");
    }
  }
  return Decreased(c, out);
}

absl::Status InferSlice(InferContext& c) {
  HT_ASSIGN_OR_RETURN(Dims out, SlicedDims(c, "Input"));
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status GradSlice(GradContext& g) {
  return g.SetGrad("Input", g.Emit("pad_like")
                                .AttrsOf(g.op())
                                .In("X", g.OutGrad("Out"))
                                .In("Like", g.Input("Input")));
}

absl::Status InferPadLike(InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Dims part, SlicedDims(c, "Like"));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "X", part,
                 absl::StrCat("those of Like, ", c.Print(c.Input("Like")),
                              ", cut as the attributes say")));
  c.SetOutput("Out", c.Input("Like").dims);
  return absl::OkStatus();
}

absl::Status GradPadLike(GradContext& g) {
  return g.SetGrad(
      "X",
      g.Emit("strided_slice").AttrsOf(g.op()).In("Input", g.OutGrad("Out")));
}

OpSchema& AddBounds(OpSchema& schema, bool strided) {
  schema
      .Attr("axes", std::vector<int64_t>(),
            "axes that are cut; []: the first ones")
      .Attr("starts", std::vector<int64_t>(),
            "first index on each; negative: from the end; []: 0")
      .Attr("ends", std::vector<int64_t>(),
            strided ? "index after the last on each; negative: from the end, "
                      "but -1 with a negative stride: through the first"
                    : "index after the last on each; negative: from the end; "
                      "beyond it, or []: the end")
      .Attr("decrease_axis", std::vector<int64_t>(),
            "axes of which one element is left, to be dropped");
  if (strided) {
    schema.Attr("strides", std::vector<int64_t>(),
                "step on each; negative: backwards; []: 1");
  }
  return schema;
}

void RegisterSlices(OpRegistry& registry) {
  for (const bool strided : {false, true}) {
    OpSchema schema = ShapeSchema(
        strided ? "strided_slice" : "slice",
        strided ? "Out = every so manyth of Input from start to end along axes."
                : "Out = Input[start:end] along axes.",
        kRequired, "Input");
    AddBounds(schema, strided)
        .Attr("infer_flags", std::vector<int64_t>(),
              "Paddle's; bounds are always known here")
        .Version(2)
        .Layout(LayoutRule::kChannelsLastOk)
        .Infer(InferSlice)
        .Grad(GradSlice);
    registry.Add(std::move(schema));
  }
  OpSchema pad = ShapeSchema("pad_like",
                             "Out = zeros in the dims of Like, but X where a "
                             "slice with these attributes takes its elements: "
                             "the gradient of slice and strided_slice.");
  pad.In("Like", "T", "any dtype", kShapeOnly);
  AddBounds(pad, true)
      .Version(2)
      .Layout(LayoutRule::kChannelsLastOk)
      .Infer(InferPadLike)
      .Grad(GradPadLike);
  registry.Add(std::move(pad));
}

// ---- flip.

absl::Status InferFlip(InferContext& c) {
  const int rank = c.Input("X").rank();
  const std::vector<int64_t>& axis = c.Ints("axis");
  if (!axis.empty() && !ReducedAxes(axis, false, rank).has_value()) {
    return AttrMismatch(
        c, "axis",
        absl::StrCat("different axes from ", -rank, " to ", rank - 1));
  }
  c.SetOutput("Out", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status GradFlip(GradContext& g) {
  return g.SetGrad("X",
                   g.Emit("flip").AttrsOf(g.op()).In("X", g.OutGrad("Out")));
}

}  // namespace

void RegisterSlice(OpRegistry& registry) {
  RegisterSlices(registry);
  registry.Add(
      ShapeSchema("flip", "Out = X, from the last to the first along axes.")
          .Attr("axis", std::vector<int64_t>(), "axes that are turned round")
          .Infer(InferFlip)
          .Grad(GradFlip));
}

}  // namespace ops
}  // namespace halftone
