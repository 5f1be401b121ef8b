// Ops that move elements and compute nothing: reshapes, orders, layouts. Slices
// and joins: slice.cc, join.cc; padding and repetition: pad.cc.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/channel_axes.h"
#include "graph/base/layout.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/shape_schema.h"

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

// X without the dims of 1 that `axes` names; without a name all that are 1.
// Others of `axes` stay, as Paddle's.
absl::Status InferSqueeze(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const int rank = static_cast<int>(x.size());
  std::vector<bool> dropped(x.size(), false);
  for (size_t i = 0; i < x.size(); ++i) {
    dropped[i] = c.Ints("axes").empty() && x[i] == Dim(1);
  }
  for (const int64_t axis : c.Ints("axes")) {
    if (axis < -rank || axis >= rank) {
      return AttrMismatch(c, "axes",
                          absl::StrCat("axes from ", -rank, " to ", rank - 1));
    }
    const int64_t i = axis < 0 ? axis + rank : axis;
    dropped[i] = x[i] == Dim(1);
  }
  c.SetOutput("Out", ReduceDims(x, dropped, false));
  return absl::OkStatus();
}

absl::Status InferUnsqueeze(InferContext& c) {
  Dims out = c.Input("X").dims;
  for (const int64_t axis : c.Ints("axes")) {  // one after the other
    const int64_t rank = static_cast<int64_t>(out.size()) + 1;
    if (axis < -rank || axis >= rank) {
      return AttrMismatch(c, "axes",
                          absl::StrCat("axes from ", -rank, " to ", rank - 1));
    }
    out.insert(out.begin() + (axis < 0 ? axis + rank : axis), Dim(1));
  }
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
  registry.Add(ShapeSchema("squeeze", "Out = X without dims of 1.")
                   .Attr("axes", std::vector<int64_t>(),
                         "which go, if they are 1; []: all of 1")
                   .Infer(InferSqueeze)
                   .Grad(GradReshape)
                   .View());
  registry.AddAlias("squeeze2", "squeeze");
  registry.Add(ShapeSchema("unsqueeze", "Out = X with further dims of 1.")
                   .RequiredAttr("axes", AttrKind::kInts,
                                 "where they stand in Out, put in one after "
                                 "the other")
                   .Infer(InferUnsqueeze)
                   .Grad(GradReshape)
                   .View());
  registry.AddAlias("unsqueeze2", "unsqueeze");
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

absl::Status InferMoveChannels(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "to", {"row_major", "channels_last"}));
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, "an image"));
  const Layout to = c.Str("to") == Name(Layout::kRowMajor)
                        ? Layout::kRowMajor
                        : Layout::kChannelsLast;
  Dims out;
  for (int64_t axis : ChannelAxes(to)) out.push_back(c.Input("X").dims[axis]);
  c.SetOutput("Out", std::move(out));
  c.SetOutputLayout("Out", to);
  return absl::OkStatus();
}

// Made by choose-layout, too.
void RegisterMoveChannels(OpRegistry& registry) {
  registry.Add(OpSchema("move_channels")
                   .Doc("Out = X, [N, C, H, W], as [N, H, W, C], or the other "
                        "way round. Of a channels-last image and a row-major "
                        "one, no byte moves.")
                   .TypeVar("T", kAnyTypes)
                   .In("X", "T", "[N, C, H, W]; [N, H, W, C]")
                   .Out("Out", "T", "[N, H, W, C]; [N, C, H, W]")
                   .RequiredAttr("to", AttrKind::kString,
                                 "layout of Out: row_major for [N, H, W, C], "
                                 "channels_last for [N, C, H, W]")
                   .Infer(InferMoveChannels)
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
}

}  // namespace

OpSchema ShapeSchema(absl::string_view name, absl::string_view doc,
                     uint32_t in_flags, absl::string_view in,
                     absl::string_view out, uint32_t out_flags) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kAnyTypes)
      .In(in, "T", in_flags & kList ? "values of one rank" : "any dims",
          in_flags)
      .Out(out, "T", "see above", out_flags)
      .Amp(AmpClass::kClear);
  return schema;
}

void RegisterShape(OpRegistry& registry) {
  RegisterReshapes(registry);
  RegisterMoves(registry);
  RegisterConvertLayout(registry);
  RegisterMoveChannels(registry);
  RegisterPadChannels(registry);
}

}  // namespace ops
}  // namespace halftone
