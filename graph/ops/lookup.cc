// Rows by number: embeddings, gathers, scatters, one-hot rows. What meets in a
// row is added up in the order of the numbers: it is the same each time.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

const DTypeSet& Indices() {
  static const auto* const indices = new DTypeSet{DType::kI64, DType::kI32};
  return *indices;
}

// ---- lookup_table_v2.

absl::Status InferLookup(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "W", 2, "[rows, width]"));
  const Dims& w = c.Input("W").dims;
  const int64_t padding = c.Int("padding_idx");
  if (w[0].is_constant() && padding >= w[0].coefficient()) {
    return AttrMismatch(c, "padding_idx",
                        absl::StrCat("a row of W, ", c.Print(c.Input("W")),
                                     ", or -1 for none"));
  }
  Dims out = c.Input("Ids").dims;
  out.push_back(w[1]);
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status GradLookup(GradContext& g) {
  return g.SetGrad("W", g.Emit("gather_grad")
                            .AttrsOf(g.op())
                            .In("X", g.Input("W"))
                            .In("Index", g.Input("Ids"))
                            .In("OutGrad", g.OutGrad("Out")));
}

void RegisterLookup(OpRegistry& registry) {
  registry.Add(
      OpSchema("lookup_table_v2")
          .Doc(absl::StrCat(
              "Out = the rows of W that Ids name: an embedding. A row that W "
              "does not have is NaN.",
              kClassOfPaddle))
          .TypeVar("T", kFloatTypes)
          .TypeVar("TIndex", Indices())
          .In("W", "T", "[rows, width]")
          .In("Ids", "TIndex", "any dims: rows, from 0 up")
          .Out("Out", "T", "dims of Ids and width")
          .Attr("padding_idx", int64_t{-1},
                "the row that gives zeros and gets no gradient; -1: none")
          .Attr("is_sparse", false, "Paddle's; the gradient is dense here")
          .Attr("is_distributed", false, "Paddle's; W is whole on each rank")
          .Attr("remote_prefetch", false, "Paddle's; likewise")
          .Infer(InferLookup)
          .Grad(GradLookup)
          .Amp(AmpClass::kBlack));
}

// ---- gather, index_select and the gradient of all three.

constexpr const char* kListOfSlices = "[n], [n, 1] or a scalar";

// The dims of the slices of X along an axis that a slot names.
absl::StatusOr<Dims> NamedSlices(InferContext& c, absl::string_view axis_attr,
                                 absl::string_view index_slot) {
  Dims dims = c.Input("X").dims;
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, axis_attr, dims.size()));
  const Dims& index = c.Input(index_slot).dims;
  if (index.size() > 2 || (index.size() == 2 && index[1] != Dim(1))) {
    return SlotMismatch(c, index_slot, kListOfSlices, "flatten it");
  }
  if (index.empty()) {
    dims.erase(dims.begin() + axis);
  } else {
    dims[axis] = index[0];
  }
  return dims;
}

// `axis_attr`: the axis along which is gathered.
absl::Status InferGather(InferContext& c, absl::string_view axis_attr) {
  HT_ASSIGN_OR_RETURN(Dims out, NamedSlices(c, axis_attr, "Index"));
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status GradGather(GradContext& g, absl::string_view axis_attr) {
  return g.SetGrad("X", g.Emit("gather_grad")
                            .In("X", g.Input("X"))
                            .In("Index", g.Input("Index"))
                            .In("OutGrad", g.OutGrad("Out"))
                            .Attr("axis", g.Attr(axis_attr)));
}

void RegisterGathers(OpRegistry& registry) {
  for (const bool select : {false, true}) {
    const std::string axis = select ? "dim" : "axis";
    registry.Add(
        OpSchema(select ? "index_select" : "gather")
            .Doc("Out = the slices of X along an axis that Index names; "
                 "negative ones count from the end. A slice that X does not "
                 "have is NaN, of integers 0.")
            .TypeVar("T", kAnyTypes)
            .TypeVar("TIndex", Indices())
            .In("X", "T", "rank 1 or more")
            .In("Index", "TIndex", kListOfSlices)
            .Out("Out", "T",
                 "dims of X, n along the axis; with a scalar "
                 "without it")
            .Attr(axis, int64_t{0}, "along which is chosen")
            .Attr("overwrite", true, "Paddle's; gradients are always added up")
            .Infer([axis](InferContext& c) { return InferGather(c, axis); })
            .Grad([axis](GradContext& g) { return GradGather(g, axis); })
            .Amp(AmpClass::kClear));
  }
  registry.Add(
      OpSchema("gather_grad")
          .Doc("The gradient of lookup_table_v2, gather and index_select: "
               "XGrad = for each slice of X the sum of OutGrad wherever it was "
               "taken, added in f32 in the order of Index and rounded once.")
          .TypeVar("T", kFloatTypes)
          .TypeVar("TIndex", Indices())
          .In("X", "T", "any dims, any dtype", kShapeOnly)
          .In("Index", "TIndex", "of the forward op")
          .In("OutGrad", "T", "dims of the forward op's Out")
          .Out("XGrad", "T", "dims of X")
          .Attr("axis", int64_t{0}, "along which was chosen")
          .Attr("padding_idx", int64_t{-1}, "the slice that gets no gradient")
          .Infer([](InferContext& c) {
            HT_RETURN_IF_ERROR(Axis(c, "axis", c.Input("X").rank()).status());
            c.SetOutput("XGrad", c.Input("X").dims);
            return absl::OkStatus();
          })
          .NoGrad()
          .Internal()
          .Amp(AmpClass::kClear)
          .Accumulate(DType::kF32));
}

// ---- scatter.

absl::Status InferScatter(InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Dims slices, NamedSlices(c, "axis", "Ids"));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "Updates", slices, "a slice of X for each of Ids"));
  c.SetOutput("Out", c.Input("X").dims);
  return absl::OkStatus();
}

// What was replaced gets none, all that was written gets what its slice has.
absl::Status GradScatter(GradContext& g) {
  const ValueId out_grad = g.OutGrad("Out");
  if (g.Wants("X")) {
    HT_ASSIGN_OR_RETURN(
        const ValueId none,
        BuildValue(g, g.Emit("fill_zeros_like").In("X", g.Input("Updates"))));
    HT_RETURN_IF_ERROR(g.SetGrad("X", g.Emit("scatter")
                                          .In("X", out_grad)
                                          .In("Ids", g.Input("Ids"))
                                          .In("Updates", none)
                                          .Attr("axis", g.Attr("axis"))));
  }
  if (!g.Wants("Updates")) return absl::OkStatus();
  return g.SetGrad("Updates", g.Emit("gather")
                                  .In("X", out_grad)
                                  .In("Index", g.Input("Ids"))
                                  .Attr("axis", g.Attr("axis")));
}

void RegisterScatter(OpRegistry& registry) {
  registry.Add(
      OpSchema("scatter")
          .Doc(absl::StrCat(
              "Out = X with other slices where Ids names them; negative ones "
              "count from the end. Of several updates of a slice the last "
              "counts or, without `overwrite`, their sum, low floats added in "
              "f32, in the order of Ids, and rounded once. Updates of a slice "
              "that X does not have go nowhere.",
              kClassOfPaddle))
          .TypeVar("T", kAnyTypes)
          .TypeVar("TIndex", Indices())
          .In("X", "T", "rank 1 or more")
          .In("Ids", "TIndex", kListOfSlices)
          .In("Updates", "T",
              "dims of X, n along the axis; with a scalar without it")
          .Out("Out", "T", "dims of X")
          .Attr("overwrite", true, "the last update of a slice, not their sum")
          .Attr("axis", int64_t{0}, "along which is chosen")
          .Infer(InferScatter)
          .Grad(GradScatter)
          .Amp(AmpClass::kBlack)
          .Accumulate(DType::kF32));
}

// ---- take_along_axis and its gradient.

absl::Status InferTakeAlong(InferContext& c) {
  const Dims& x = c.Input("Input").dims;
  const Dims& index = c.Input("Index").dims;
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "Axis", x.size()));
  Dims expected = x;
  if (index.size() == x.size()) expected[axis] = index[axis];
  if (index != expected) {
    return SlotMismatch(
        c, "Index",
        absl::StrCat("the dims of Input, ", c.Print(c.Input("Input")),
                     ", any number along axis ", axis),
        "expand it to the others");
  }
  c.SetOutput("Result", index);
  return absl::OkStatus();
}

absl::Status GradTakeAlong(GradContext& g) {
  return g.SetGrad("Input", g.Emit("take_along_axis_grad")
                                .AttrsOf(g.op())
                                .In("Input", g.Input("Input"))
                                .In("Index", g.Input("Index"))
                                .In("ResultGrad", g.OutGrad("Result")));
}

void RegisterTakeAlong(OpRegistry& registry) {
  registry.Add(
      OpSchema("take_along_axis")
          .Doc("Result[.., i, ..] = Input[.., Index[.., i, ..], ..]: along an "
               "axis each row takes its own elements; negative numbers count "
               "from the end. An element that Input does not have is NaN, of "
               "integers 0.")
          .TypeVar("T", kAnyTypes)
          .TypeVar("TIndex", Indices())
          .In("Input", "T", "rank 1 or more")
          .In("Index", "TIndex", "dims of Input but along the axis")
          .Out("Result", "T", "dims of Index")
          .Attr("Axis", int64_t{0}, "along which is chosen")
          .Infer(InferTakeAlong)
          .Grad(GradTakeAlong)
          .Amp(AmpClass::kClear));
  registry.Add(
      OpSchema("take_along_axis_grad")
          .Doc("The gradient of take_along_axis: InputGrad = for each element "
               "of Input the sum of ResultGrad wherever it was taken, added in "
               "f32 in the order of Index and rounded once.")
          .TypeVar("T", kFloatTypes)
          .TypeVar("TIndex", Indices())
          .In("Input", "T", "any dims, any dtype", kShapeOnly)
          .In("Index", "TIndex", "of the forward op")
          .In("ResultGrad", "T", "dims of Index")
          .Out("InputGrad", "T", "dims of Input")
          .Attr("Axis", int64_t{0}, "along which was chosen")
          .Infer([](InferContext& c) {
            const int rank = c.Input("Input").rank();
            HT_RETURN_IF_ERROR(Axis(c, "Axis", rank).status());
            c.SetOutput("InputGrad", c.Input("Input").dims);
            return absl::OkStatus();
          })
          .NoGrad()
          .Internal()
          .Amp(AmpClass::kClear)
          .Accumulate(DType::kF32));
}

// ---- one_hot_v2.

absl::Status InferOneHot(InferContext& c) {
  if (c.Int("depth") < 1) {
    return AttrMismatch(c, "depth", "how many classes there are, from 1 up");
  }
  Dims out = c.Input("X").dims;
  out.push_back(Dim(c.Int("depth")));
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

}  // namespace

void RegisterLookups(OpRegistry& registry) {
  RegisterLookup(registry);
  RegisterGathers(registry);
  RegisterScatter(registry);
  RegisterTakeAlong(registry);
  registry.Add(
      OpSchema("one_hot_v2")
          .Doc("Out = 1 at the class that X names, else 0; zeros for a class "
               "that there is not.")
          .TypeVar("TIndex", Indices())
          .TypeVar("TOut", {DType::kF32, DType::kF16, DType::kBF16, DType::kI32,
                            DType::kI64})
          .In("X", "TIndex", "any dims: classes from 0 up")
          .Out("Out", "TOut", "dims of X and depth")
          .RequiredAttr("depth", AttrKind::kInt, "how many classes there are")
          .Attr("dtype", DType::kF32,
                "dtype of Out; Paddle's numbers are known")
          .Attr("allow_out_of_range", false, "Paddle's; they are zeros")
          .Infer(InferOneHot)
          .NoGrad()
          .Amp(AmpClass::kGray));
}

}  // namespace ops
}  // namespace halftone
