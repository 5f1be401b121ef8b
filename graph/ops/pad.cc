// More elements than there are: padding and repetition.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/shape_schema.h"

namespace halftone {
namespace ops {
namespace {

constexpr int64_t kMostPadded = int64_t{1} << 40;

// ---- pad, pad3d.

// dims with `before` and `after` more along an axis.
absl::Status PadAxis(const InferContext& c, int axis, int64_t before,
                     int64_t after, Dims* dims) {
  if (before < 0 || after < 0 || before > kMostPadded || after > kMostPadded) {
    return AttrMismatch(c, "paddings", "numbers from 0 up",
                        "slice takes elements away");
  }
  if (before == 0 && after == 0) return absl::OkStatus();
  Dim& dim = (*dims)[axis];
  if (!dim.is_constant()) {
    return SlotMismatch(c, "X", absl::StrCat("a constant dim ", axis),
                        "a symbolic dim cannot be padded");
  }
  dim = Dim(dim.coefficient() + before + after);
  return absl::OkStatus();
}

absl::Status InferPad(InferContext& c) {
  Dims out = c.Input("X").dims;
  const std::vector<int64_t>& paddings = c.Ints("paddings");
  if (paddings.size() != 2 * out.size()) {
    return AttrMismatch(
        c, "paddings",
        absl::StrCat(2 * out.size(), " numbers, before and after each dim"));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    HT_RETURN_IF_ERROR(
        PadAxis(c, i, paddings[2 * i], paddings[2 * i + 1], &out));
  }
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferPad3d(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 5, "[N, C, D, H, W]"));
  HT_RETURN_IF_ERROR(
      ExpectWord(c, "mode", {"constant", "reflect", "replicate", "circular"}));
  HT_RETURN_IF_ERROR(ExpectWord(c, "data_format", {"NCDHW"}));
  Dims out = c.Input("X").dims;
  const std::vector<int64_t>& paddings = c.Ints("paddings");
  if (paddings.size() != 6) {
    return AttrMismatch(c, "paddings",
                        "6 numbers: left, right, top, bottom, front, back");
  }
  const std::string& mode = c.Str("mode");
  for (int i = 0; i < 3; ++i) {
    const int axis = 4 - i;
    const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
    const int64_t most = std::max(before, after);
    const Dim dim = out[axis];
    HT_RETURN_IF_ERROR(PadAxis(c, axis, before, after, &out));
    if (mode == "constant" || most == 0) continue;
    const int64_t size = dim.coefficient();
    const int64_t room = mode == "reflect"
                             ? size - 1
                             : (mode == "circular" ? size : kMostPadded);
    if (size > 0 && most <= room) continue;
    return AttrMismatch(
        c, "paddings",
        absl::StrCat("at most ", std::max<int64_t>(size > 0 ? room : 0, 0),
                     " beside dim ", axis, " of X, ", c.Print(c.Input("X")),
                     ", in mode \"", mode, "\""));
  }
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// What was not padded, of the gradient.
absl::Status SetInnerGrad(GradContext& g, const std::vector<int64_t>& before) {
  const Dims& x = g.type(g.Input("X")).dims;
  std::vector<int64_t> axes, starts, ends;
  for (size_t i = 0; i < x.size(); ++i) {
    if (g.type(g.OutGrad("Out")).dims[i] == x[i]) continue;
    axes.push_back(i);
    starts.push_back(before[i]);
    ends.push_back(before[i] + x[i].coefficient());
  }
  return g.SetGrad("X", g.Emit("slice")
                            .In("Input", g.OutGrad("Out"))
                            .Attr("axes", axes)
                            .Attr("starts", starts)
                            .Attr("ends", ends));
}

absl::Status GradPad(GradContext& g) {
  const auto& paddings = std::get<std::vector<int64_t>>(g.Attr("paddings"));
  std::vector<int64_t> before;
  for (size_t i = 0; i < paddings.size(); i += 2) before.push_back(paddings[i]);
  return SetInnerGrad(g, before);
}

absl::Status GradPad3d(GradContext& g) {
  const auto& paddings = std::get<std::vector<int64_t>>(g.Attr("paddings"));
  if (std::get<std::string>(g.Attr("mode")) == "constant") {
    return SetInnerGrad(g, {0, 0, paddings[4], paddings[2], paddings[0]});
  }
  return g.SetGrad("X", g.Emit("pad3d_grad")
                            .AttrsOf(g.op())
                            .In("X", g.Input("X"))
                            .In("OutGrad", g.OutGrad("Out")));
}

absl::Status InferPad3dGrad(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 5, "[N, C, D, H, W]"));
  c.SetOutput("XGrad", c.Input("X").dims);
  return absl::OkStatus();
}

void RegisterPads(OpRegistry& registry) {
  registry.Add(
      ShapeSchema("pad", "Out = X within a border of pad_value.")
          .RequiredAttr("paddings", AttrKind::kInts,
                        "elements before and after each dim, dim by dim")
          .Attr("pad_value", 0.0, "rounded to the dtype")
          .Infer(InferPad)
          .Grad(GradPad));
  registry.Add(
      OpSchema("pad3d")
          .Doc("Out = X within a border: of value, or of X's own elements, "
               "mirrored at the edge element, repeating it, or from the other "
               "end.")
          .TypeVar("T", kAnyTypes)
          .In("X", "T", "[N, C, D, H, W]")
          .Out("Out", "T", "dims of X with the border")
          .Amp(AmpClass::kClear)
          .RequiredAttr("paddings", AttrKind::kInts,
                        "left, right (W), top, bottom (H), front, back (D)")
          .Attr("mode", "constant", "constant, reflect, replicate or circular")
          .Attr("value", 0.0, "of the border in mode constant")
          .Attr("data_format", "NCDHW", "the order of dims: NCDHW alone")
          .Infer(InferPad3d)
          .Grad(GradPad3d));
  registry.Add(OpSchema("pad3d_grad")
                   .Doc("The gradient of pad3d: XGrad = sums of OutGrad over "
                        "where each element of X went, added in f32.")
                   .TypeVar("T", kFloatTypes)
                   .In("X", "T", "[N, C, D, H, W], any dtype", kShapeOnly)
                   .In("OutGrad", "T", "dims of pad3d's Out")
                   .Out("XGrad", "T", "dims of X")
                   .RequiredAttr("paddings", AttrKind::kInts, "those of pad3d")
                   .Attr("mode", "constant", "that of pad3d")
                   .Infer(InferPad3dGrad)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kClear)
                   .Accumulate(DType::kF32));
}

// ---- expand_v2, tile.

absl::Status InferExpand(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const std::vector<int64_t>& shape = c.Ints("shape");
  const auto bad = [&](size_t i) {
    return AttrMismatch(
        c, "shape",
        absl::StrCat("at dim ", i, " the dim of X, ", c.Print(c.Input("X")),
                     ", or -1 for it, or any number where that is 1"));
  };
  if (shape.size() < x.size()) {
    return AttrMismatch(c, "shape",
                        absl::StrCat("at least ", x.size(), " dims"));
  }
  const size_t more = shape.size() - x.size();
  Dims out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < more) {
      if (shape[i] < 0) return bad(i);
      out.push_back(Dim(shape[i]));
      continue;
    }
    const Dim& own = x[i - more];
    if (shape[i] < -1) return bad(i);
    if (shape[i] != -1 && own != Dim(1) && own != Dim(shape[i])) return bad(i);
    out.push_back(shape[i] == -1 ? own : Dim(shape[i]));
  }
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status GradExpand(GradContext& g) {
  return SetSummedGrad(g, "X", g.OutGrad("Out"), -1);
}

// X with ones before its dims, and how often each is repeated.
struct Tiling {
  Dims dims;
  std::vector<int64_t> repeats;
};
Tiling TilingOf(const Dims& x, const std::vector<int64_t>& repeats) {
  const size_t rank = std::max(x.size(), repeats.size());
  Tiling tiling{Dims(rank, Dim(1)), std::vector<int64_t>(rank, 1)};
  std::copy(x.begin(), x.end(), tiling.dims.end() - x.size());
  std::copy(repeats.begin(), repeats.end(),
            tiling.repeats.end() - repeats.size());
  return tiling;
}

absl::Status InferTile(InferContext& c) {
  const std::vector<int64_t>& repeats = c.Ints("repeat_times");
  for (const int64_t repeat : repeats) {
    if (repeat < 1 || repeat > kMostPadded) {
      return AttrMismatch(c, "repeat_times", "numbers from 1 up");
    }
  }
  Tiling tiling = TilingOf(c.Input("X").dims, repeats);
  for (size_t i = 0; i < tiling.dims.size(); ++i) {
    tiling.dims[i] = tiling.dims[i] * Dim(tiling.repeats[i]);
  }
  c.SetOutput("Out", std::move(tiling.dims));
  return absl::OkStatus();
}

// Each repeated dim is cut into the repetitions, which are added up.
absl::Status GradTile(GradContext& g) {
  const Tiling tiling =
      TilingOf(g.type(g.Input("X")).dims,
               std::get<std::vector<int64_t>>(g.Attr("repeat_times")));
  ValueId grad = g.OutGrad("Out");
  for (size_t i = 0; i < tiling.dims.size(); ++i) {
    if (tiling.repeats[i] == 1) continue;
    // What lies before the dim stays, what lies behind it too: at most one dim
    // is not known, and it stays where it is or is this one.
    const Dims& now = g.type(grad).dims;
    std::vector<int64_t> shape;
    bool unknown = false;
    for (size_t k = 0; k < now.size(); ++k) {
      if (k == i) shape.push_back(tiling.repeats[i]);
      const Dim& dim = k == i ? tiling.dims[i] : now[k];
      if (dim.is_constant()) {
        shape.push_back(dim.coefficient());
      } else if (k < i) {
        shape.push_back(0);
      } else if (!unknown) {
        shape.push_back(-1);
        unknown = true;
      } else {
        return ModelError(
            "tile: its gradient needs at most one symbolic dim from the first "
            "repeated one on; use expand_v2, or reshape X");
      }
    }
    HT_ASSIGN_OR_RETURN(
        grad,
        BuildValue(g, g.Emit("reshape").In("X", grad).Attr("shape", shape)));
    HT_ASSIGN_OR_RETURN(
        grad, BuildValue(g, g.Emit("reduce_sum")
                                .In("X", grad)
                                .Attr("dim", std::vector<int64_t>{
                                                 static_cast<int64_t>(i)})));
  }
  if (g.type(grad).dims == g.type(g.Input("X")).dims) {
    g.SetGrad("X", grad);
    return absl::OkStatus();
  }
  return g.SetGrad(
      "X", g.Emit("reshape_like").In("X", grad).In("Like", g.Input("X")));
}

void RegisterRepetitions(OpRegistry& registry) {
  registry.Add(
      ShapeSchema("expand_v2",
                  "Out = X, its dims of 1 repeated; X's dims go with the last "
                  "of shape.")
          .RequiredAttr("shape", AttrKind::kInts,
                        "dims of Out; -1: that of X in this place")
          .Infer(InferExpand)
          .Grad(GradExpand));
  registry.Add(ShapeSchema("tile",
                           "Out = X, one copy beside the other; X's dims go "
                           "with the last of repeat_times.")
                   .RequiredAttr("repeat_times", AttrKind::kInts,
                                 "copies along each dim")
                   .Infer(InferTile)
                   .Grad(GradTile));
}

}  // namespace

void RegisterPad(OpRegistry& registry) {
  RegisterPads(registry);
  RegisterRepetitions(registry);
}

}  // namespace ops
}  // namespace halftone
