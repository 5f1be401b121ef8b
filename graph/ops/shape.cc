// Ops that move elements and compute nothing.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

// ---- reshape, reshape_like, flatten.

absl::Status BadShape(const InferContext& c, absl::string_view expected,
                      absl::string_view advice) {
  return AttrMismatch(c, "shape",
                      absl::StrCat(expected, " for X, ", c.Print(c.Input("X"))),
                      advice);
}

absl::Status InferReshape(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const std::vector<int64_t>& shape = c.Ints("shape");
  Dims out;
  // Elements of X and of Out without the dims that are copied.
  Dim have(1), given(1);
  int unknown = -1;
  std::vector<bool> copied(x.size(), false);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < -1 || (shape[i] == -1 && unknown >= 0) ||
        (shape[i] == 0 && i >= x.size())) {
      return BadShape(c,
                      "dims from 1 up, 0 (the dim of X in that place) and "
                      "at most one -1",
                      "write each dim");
    }
    if (shape[i] == -1) unknown = static_cast<int>(i);
    if (shape[i] == 0) copied[i] = true;
    if (shape[i] > 0) given = given * Dim(shape[i]);
    out.push_back(shape[i] == 0 ? x[i] : Dim(std::max<int64_t>(shape[i], 1)));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    if (!copied[i]) have = have * x[i];
  }
  if (unknown >= 0) {
    if (!have.DivideBy(given, &out[unknown])) {
      return BadShape(c, "elements that divide exactly",
                      "change the dims beside -1");
    }
  } else if (have != given) {
    return BadShape(c, "as many elements as X has",
                    "use -1 or 0 for a dim that varies, as the batch does");
  }
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferReshapeLike(InferContext& c) {
  const TensorType& x = c.Input("X");
  const TensorType& like = c.Input("Like");
  if (x.Elements() != like.Elements()) {
    return SlotMismatch(
        c, "X", absl::StrCat("as many elements as Like, ", c.Print(like)),
        "their products of dims must be equal");
  }
  c.SetOutput("Out", like.dims);
  return absl::OkStatus();
}

absl::Status InferFlatten(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const int rank = static_cast<int>(x.size());
  if (rank == 0) {  // one element: a vector of it
    c.SetOutput("Out", {Dim(1)});
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(const int start, Axis(c, "start_axis", rank));
  HT_ASSIGN_OR_RETURN(const int stop, Axis(c, "stop_axis", rank));
  if (start > stop) {
    return AttrMismatch(c, "start_axis",
                        absl::StrCat("at most stop_axis, ", stop));
  }
  Dims out(x.begin(), x.begin() + start);
  out.push_back(
      Product(absl::MakeConstSpan(x).subspan(start, stop - start + 1)));
  out.insert(out.end(), x.begin() + stop + 1, x.end());
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status GradReshape(GradContext& g) {
  return g.SetGrad("X", g.Emit("reshape_like")
                            .In("X", g.OutGrad("Out"))
                            .In("Like", g.Input("X")));
}

// ---- transpose.

absl::Status InferTranspose(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const std::vector<int64_t>& axis = c.Ints("axis");
  const int64_t rank = static_cast<int64_t>(x.size());
  std::vector<bool> used(x.size(), false);
  Dims out;
  for (int64_t a : axis) {
    if (a >= -rank && a < 0) a += rank;
    if (a < 0 || a >= rank || used[a]) break;
    used[a] = true;
    out.push_back(x[a]);
  }
  if (out.size() != axis.size() || out.size() != x.size()) {
    return AttrMismatch(
        c, "axis",
        absl::StrCat("each axis of X, ", c.Print(c.Input("X")), ", once"));
  }
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status GradTranspose(GradContext& g) {
  const auto& axis = std::get<std::vector<int64_t>>(g.Attr("axis"));
  const int64_t rank = static_cast<int64_t>(axis.size());
  std::vector<int64_t> inverse(axis.size());
  for (int64_t i = 0; i < rank; ++i) {
    inverse[axis[i] < 0 ? axis[i] + rank : axis[i]] = i;
  }
  return g.SetGrad(
      "X", g.Emit("transpose").In("X", g.OutGrad("Out")).Attr("axis", inverse));
}

// ---- concat, slice, pad_like.

// The dims of all X, one after the other.
absl::StatusOr<Dims> JoinedDims(const InferContext& c) {
  const auto x = c.InputList("X");
  if (x.empty()) return SlotMismatch(c, "X", "one value or more");
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", x[0].rank()));
  Dims out = x[0].dims;
  for (size_t i = 1; i < x.size(); ++i) {
    Dims like = x[i].dims;
    const bool same_rank = like.size() == out.size();
    const auto total = same_rank ? Sum(out[axis], like[axis]) : std::nullopt;
    if (same_rank) like[axis] = out[axis];
    if (like != out || !total.has_value()) {
      return MemberMismatch(c, "X", i,
                            absl::StrCat("the dims of X[0], ", c.Print(x[0]),
                                         ", but along axis ", axis),
                            "symbolic and constant dims cannot be added up");
    }
    out[axis] = *total;
  }
  return out;
}

absl::Status InferConcat(InferContext& c) {
  HT_ASSIGN_OR_RETURN(Dims out, JoinedDims(c));
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// Where the parts begin is not known before the symbols are: one op for all.
absl::Status GradSymbolicConcat(GradContext& g) {
  OpBuilder builder = g.Emit("concat_grad");
  builder.AttrsOf(g.op()).In("OutGrad", g.OutGrad("Out"));
  const int count = g.InputCount("X");
  for (int i = 0; i < count; ++i) builder.In("X", g.Input("X", i));
  for (int i = 0; i < count; ++i) builder.Out("XGrad", g.GradName("X", i));
  HT_ASSIGN_OR_RETURN(const OpId id, builder.Build());
  const auto grads = g.block().op(id).outputs.slot(0);
  for (int i = 0; i < count; ++i) {
    if (g.Wants("X", i)) g.SetGrad("X", grads[i], i);
  }
  return absl::OkStatus();
}

absl::Status GradConcat(GradContext& g) {
  const int rank = g.type(g.Input("X")).rank();
  int64_t axis = std::get<int64_t>(g.Attr("axis"));
  if (axis < 0) axis += rank;
  for (int i = 0; i < g.InputCount("X"); ++i) {
    if (!g.type(g.Input("X", i)).dims[axis].is_constant()) {
      return GradSymbolicConcat(g);
    }
  }
  int64_t start = 0;
  for (int i = 0; i < g.InputCount("X"); ++i) {
    const Dim size = g.type(g.Input("X", i)).dims[axis];
    const int64_t end = start + size.coefficient();
    if (g.Wants("X", i)) {
      HT_RETURN_IF_ERROR(g.SetGrad("X",
                                   g.Emit("slice")
                                       .In("X", g.OutGrad("Out"))
                                       .Attr("axis", axis)
                                       .Attr("start", start)
                                       .Attr("end", end),
                                   i));
    }
    start = end;
  }
  return absl::OkStatus();
}

absl::Status InferConcatGrad(InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Dims whole, JoinedDims(c));
  const auto x = c.InputList("X");
  HT_RETURN_IF_ERROR(ExpectDims(c, "OutGrad", whole, "those of X, joined"));
  if (c.OutputCount("XGrad") != static_cast<int>(x.size())) {
    return c.Error("slot XGrad: expected ", x.size(),
                   " values, one per member of X, found ",
                   c.OutputCount("XGrad"), "; name each output");
  }
  for (size_t i = 0; i < x.size(); ++i) c.SetOutput("XGrad", x[i].dims, i);
  return absl::OkStatus();
}

// `start` and `end` of a slice, within [0, size].
std::pair<int64_t, int64_t> SliceBounds(int64_t start, int64_t end,
                                        int64_t size) {
  const auto clamp = [size](int64_t i) {
    return std::min(std::max<int64_t>(i < 0 ? i + size : i, 0), size);
  };
  return {clamp(start), std::max(clamp(start), clamp(end))};
}

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

absl::Status InferSlice(InferContext& c) {
  Dims out = c.Input("X").dims;
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", out.size()));
  const int64_t start = c.Int("start"), end = c.Int("end");
  if (out[axis].is_constant()) {
    const auto bounds = SliceBounds(start, end, out[axis].coefficient());
    out[axis] = Dim(bounds.second - bounds.first);
  } else if (start != 0 || end != kToTheEnd) {
    return SlotMismatch(c, "X", absl::StrCat("a constant dim ", axis),
                        "a symbolic dim can only be taken whole");
  }
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status GradSlice(GradContext& g) {
  const Dims& x = g.type(g.Input("X")).dims;
  int64_t axis = std::get<int64_t>(g.Attr("axis"));
  if (axis < 0) axis += static_cast<int64_t>(x.size());
  const auto bounds = SliceBounds(
      std::get<int64_t>(g.Attr("start")), std::get<int64_t>(g.Attr("end")),
      x[axis].is_constant() ? x[axis].coefficient() : 0);
  return g.SetGrad("X", g.Emit("pad_like")
                            .In("X", g.OutGrad("Out"))
                            .In("Like", g.Input("X"))
                            .Attr("axis", axis)
                            .Attr("start", bounds.first));
}

absl::Status InferPadLike(InferContext& c) {
  const Dims& like = c.Input("Like").dims;
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", like.size()));
  const int64_t start = c.Int("start");
  Dims whole = c.Input("X").dims;
  bool fits = whole.size() == like.size() && start >= 0;
  if (fits && whole[axis] != like[axis]) {
    fits = whole[axis].is_constant() && like[axis].is_constant() &&
           start <= like[axis].coefficient() - whole[axis].coefficient();
    whole[axis] = like[axis];
  } else {
    fits = fits && start == 0;
  }
  if (!fits || whole != like) {
    return SlotMismatch(
        c, "X",
        absl::StrCat("a part of Like, ", c.Print(c.Input("Like")), ", from ",
                     start, " on along axis ", axis));
  }
  c.SetOutput("Out", like);
  return absl::OkStatus();
}

absl::Status GradPadLike(GradContext& g) {
  int64_t axis = std::get<int64_t>(g.Attr("axis"));
  const Dims& x = g.type(g.Input("X")).dims;
  if (axis < 0) axis += static_cast<int64_t>(x.size());
  OpBuilder builder =
      g.Emit("slice").In("X", g.OutGrad("Out")).Attr("axis", axis);
  if (x[axis].is_constant()) {
    const int64_t start = std::get<int64_t>(g.Attr("start"));
    builder.Attr("start", start).Attr("end", start + x[axis].coefficient());
  }
  return g.SetGrad("X", std::move(builder));
}

OpSchema ShapeSchema(absl::string_view name, absl::string_view doc,
                     uint32_t x_flags = kRequired) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kAnyTypes)
      .In("X", "T", x_flags & kList ? "values of one rank" : "any dims",
          x_flags)
      .Out("Out", "T", "see above")
      .Amp(AmpClass::kClear);
  return schema;
}

void RegisterReshapes(OpRegistry& registry) {
  registry.Add(ShapeSchema("reshape", "Out = the elements of X in other dims.")
                   .Attr("shape", std::vector<int64_t>(),
                         "dims of Out; 0: that of X in this place, one -1: "
                         "what is left; []: a scalar")
                   .Infer(InferReshape)
                   .Grad(GradReshape)
                   .View());
  registry.AddAlias("reshape2", "reshape");
  registry.Add(ShapeSchema("reshape_like",
                           "Out = the elements of X in the dims of Like.")
                   .In("Like", "T", "as many elements, any dtype", kShapeOnly)
                   .Infer(InferReshapeLike)
                   .Grad(GradReshape)
                   .View());
  registry.Add(ShapeSchema("flatten",
                           "Out = X with the dims start_axis to stop_axis as "
                           "one.")
                   .Attr("start_axis", int64_t{1}, "first of these dims")
                   .Attr("stop_axis", int64_t{-1}, "last of these dims")
                   .Attr("written_as", std::string(),
                         "the alias that the model has: lists of ops tell "
                         "flatten2 apart")
                   .Infer(InferFlatten)
                   .Grad(GradReshape)
                   .View());
  registry.AddAlias("flatten2", "flatten");
  registry.AddAlias("flatten_contiguous_range", "flatten");
}

absl::Status InferConvertLayout(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "to", {"row_major", "channels_last"}));
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, "[N, C, H, W]"));
  c.SetOutput("Out", c.Input("X").dims);
  c.SetOutputLayout("Out", c.Str("to") == "row_major" ? Layout::kRowMajor
                                                      : Layout::kChannelsLast);
  return absl::OkStatus();
}

// Made by choose-layout, after backward: it has no gradient.
void RegisterConvertLayout(OpRegistry& registry) {
  registry.Add(OpSchema("convert_layout")
                   .Doc("Out = X, its elements in another physical order.")
                   .TypeVar("T", kAnyTypes)
                   .In("X", "T", "[N, C, H, W]")
                   .Out("Out", "T", "dims of X")
                   .RequiredAttr("to", AttrKind::kString,
                                 "layout of Out: row_major or channels_last")
                   .Infer(InferConvertLayout)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kClear)
                   .Layout(LayoutRule::kAny)
                   .View());
}

absl::Status InferPadChannels(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, "[N, C, H, W]"));
  Dims dims = c.Input("X").dims;
  const int64_t channels = c.Int("channels");
  if (!dims[1].is_constant() || channels < dims[1].coefficient()) {
    return AttrMismatch(
        c, "channels",
        absl::StrCat("at least the channels of X, ", c.Print(c.Input("X"))));
  }
  dims[1] = Dim(channels);
  c.SetOutput("Out", std::move(dims));
  c.SetOutputLayout("Out", Layout::kChannelsLast);
  return absl::OkStatus();
}

// Made by choose-layout, too.
void RegisterPadChannels(OpRegistry& registry) {
  registry.Add(
      OpSchema("pad_channels")
          .Doc("Out = X and after its channels others of zeros, laid "
               "out channels-last: what tensor cores convolve.")
          .TypeVar("T", kAnyTypes)
          .In("X", "T", "[N, C, H, W]")
          .Out("Out", "T", "[N, channels, H, W]")
          .RequiredAttr("channels", AttrKind::kInt, "of Out: C or more")
          .Infer(InferPadChannels)
          .NoGrad()
          .Internal()
          .Amp(AmpClass::kClear)
          .Layout(LayoutRule::kAny));
}

void RegisterMoves(OpRegistry& registry) {
  registry.Add(ShapeSchema("transpose",
                           "Out = X with its dims in another order: dim i of "
                           "Out is dim axis[i] of X.")
                   .RequiredAttr("axis", AttrKind::kInts,
                                 "the permutation, one entry per dim")
                   .Infer(InferTranspose)
                   .Grad(GradTranspose));
  registry.AddAlias("transpose2", "transpose");
  registry.Add(ShapeSchema("concat", "Out = all X, one after the other.", kList)
                   .Attr("axis", int64_t{0}, "along which they are joined")
                   .Infer(InferConcat)
                   .Grad(GradConcat));
  registry.Add(OpSchema("concat_grad")
                   .Doc("The parts of OutGrad that belong to each X: the "
                        "gradient of concat along a dim that varies.")
                   .TypeVar("T", kAnyTypes)
                   .In("OutGrad", "T", "dims of all X, joined")
                   .In("X", "T", "any dtype", kList | kShapeOnly)
                   .Out("XGrad", "T", "one per member of X, its dims", kList)
                   .Attr("axis", int64_t{0}, "along which they are joined")
                   .Infer(InferConcatGrad)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kClear));
  registry.Add(
      ShapeSchema("slice", "Out = X[start:end] along axis.")
          .Attr("axis", int64_t{0}, "along which X is cut")
          .Attr("start", int64_t{0}, "first index; negative: from the end")
          .Attr("end", kToTheEnd,
                "index after the last; negative: from the end; "
                "beyond it: the end")
          .Infer(InferSlice)
          .Grad(GradSlice));
  registry.Add(ShapeSchema("pad_like",
                           "Out = zeros in the dims of Like, but X from start "
                           "on along axis: the gradient of slice.")
                   .In("Like", "T", "any dtype", kShapeOnly)
                   .Attr("axis", int64_t{0}, "along which X is shorter")
                   .Attr("start", int64_t{0}, "where X begins, from 0 up")
                   .Infer(InferPadLike)
                   .Grad(GradPadLike));
}

}  // namespace

void RegisterShape(OpRegistry& registry) {
  RegisterReshapes(registry);
  RegisterMoves(registry);
  RegisterConvertLayout(registry);
  RegisterPadChannels(registry);
}

}  // namespace ops
}  // namespace halftone
