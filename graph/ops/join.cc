// Joins of tensors and cuts into several.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/shape_schema.h"

namespace halftone {
namespace ops {
namespace {

using Axes = std::vector<int64_t>;

// ---- concat.

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
  const auto x = c.InputList("X");
  for (size_t i = 1; i < x.size(); ++i) {
    if (x[i].layout == x[0].layout) continue;
    return MemberMismatch(
        c, "X", i, absl::StrCat(Name(x[0].layout), " as X[0], ", c.Print(x[0])),
        "what is joined lies in one order");
  }
  c.SetOutput("Out", std::move(out));
  c.SetOutputLayout("Out", x[0].layout);
  return absl::OkStatus();
}

// The parts lie as the whole.
void LayOutParts(InferContext& c, absl::string_view slot, int count,
                 Layout layout) {
  for (int i = 0; i < count; ++i) c.SetOutputLayout(slot, layout, i);
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
                                       .In("Input", g.OutGrad("Out"))
                                       .Attr("axes", Axes{axis})
                                       .Attr("starts", Axes{start})
                                       .Attr("ends", Axes{end}),
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
  LayOutParts(c, "XGrad", c.OutputCount("XGrad"), c.Input("OutGrad").layout);
  return absl::OkStatus();
}

// ---- split.

absl::Status BadSections(const InferContext& c, absl::string_view expected) {
  return AttrMismatch(c, "sections",
                      absl::StrCat(expected, " for X, ", c.Print(c.Input("X"))),
                      "one -1 is what the others leave; with [] num says into "
                      "how many equal parts");
}

// The extents of the parts along the axis.
absl::StatusOr<std::vector<Dim>> Parts(const InferContext& c, const Dim& dim,
                                       int count) {
  const std::vector<int64_t>& sections = c.Ints("sections");
  if (sections.empty()) {
    Dim part;
    const int64_t num = c.Int("num") > 0 ? c.Int("num") : count;
    if (num != count || !dim.DivideBy(Dim(num), &part)) {
      return AttrMismatch(
          c, "num",
          absl::StrCat("as many parts as outputs, ", count, ", into which ",
                       PrintDims(c, {dim}), " can be cut evenly"));
    }
    return std::vector<Dim>(count, part);
  }
  if (static_cast<int>(sections.size()) != count) {
    return BadSections(c, absl::StrCat(count, " extents, one for each output"));
  }
  if (!dim.is_constant()) {
    return BadSections(c, "[], as the axis varies,");
  }
  int64_t rest = dim.coefficient();
  int unknown = -1;
  std::vector<Dim> parts;
  for (const int64_t section : sections) {
    const bool is_rest = section == -1 && unknown < 0;
    if (is_rest) unknown = static_cast<int>(parts.size());
    if (!is_rest && (section < 0 || section > rest)) {
      return BadSections(c, "extents that make up the axis");
    }
    if (!is_rest) rest -= section;
    parts.push_back(Dim(is_rest ? 0 : section));
  }
  if (unknown >= 0) {
    parts[unknown] = Dim(rest);
  } else if (rest != 0) {
    return BadSections(c, "extents that make up the axis");
  }
  return parts;
}

absl::Status InferSplit(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", x.size()));
  const int count = c.OutputCount("Out");
  if (count == 0) return c.Error("slot Out: expected one value or more");
  HT_ASSIGN_OR_RETURN(const auto parts, Parts(c, x[axis], count));
  for (int i = 0; i < count; ++i) {
    Dims out = x;
    out[axis] = parts[i];
    c.SetOutput("Out", std::move(out), i);
  }
  LayOutParts(c, "Out", count, c.Input("X").layout);
  return absl::OkStatus();
}

// The gradients of all outputs of a list, zeros where none flows.
absl::StatusOr<std::vector<ValueId>> ListGrads(GradContext& g,
                                               absl::string_view slot) {
  const int index = g.op().schema->FindOutput(slot);
  const int count = static_cast<int>(g.op().outputs.slot(index).size());
  std::vector<ValueId> grads;
  for (int i = 0; i < count; ++i) {
    grads.push_back(g.OutGrad(slot, i));
    if (grads.back().valid()) continue;
    HT_ASSIGN_OR_RETURN(
        grads.back(),
        BuildValue(g, g.Emit("fill_zeros_like").In("X", g.Output(slot, i))));
  }
  return grads;
}

absl::Status GradSplit(GradContext& g) {
  HT_ASSIGN_OR_RETURN(const auto grads, ListGrads(g, "Out"));
  return g.SetGrad(
      "X", g.Emit("concat").In("X", grads).Attr("axis", g.Attr("axis")));
}

// ---- stack, unstack.

absl::Status InferStack(InferContext& c) {
  const auto x = c.InputList("X");
  if (x.empty()) return SlotMismatch(c, "X", "one value or more");
  for (size_t i = 1; i < x.size(); ++i) {
    if (x[i].dims == x[0].dims) continue;
    return MemberMismatch(c, "X", i,
                          absl::StrCat("the dims of X[0], ", c.Print(x[0])));
  }
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", x[0].rank() + 1));
  Dims out = x[0].dims;
  out.insert(out.begin() + axis, Dim(static_cast<int64_t>(x.size())));
  c.SetOutput("Y", std::move(out));
  return absl::OkStatus();
}

absl::Status GradStack(GradContext& g) {
  OpBuilder builder = g.Emit("unstack");
  builder.In("X", g.OutGrad("Y")).Attr("axis", g.Attr("axis"));
  const int count = g.InputCount("X");
  for (int i = 0; i < count; ++i) builder.Out("Y", g.GradName("X", i));
  HT_ASSIGN_OR_RETURN(const OpId id, builder.Build());
  const auto grads = g.block().op(id).outputs.slot(0);
  for (int i = 0; i < count; ++i) {
    if (g.Wants("X", i)) g.SetGrad("X", grads[i], i);
  }
  return absl::OkStatus();
}

absl::Status InferUnstack(InferContext& c) {
  Dims out = c.Input("X").dims;
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", out.size()));
  const int count = c.OutputCount("Y");
  const int64_t num = c.Int("num") > 0 ? c.Int("num") : count;
  if (out[axis] != Dim(count) || num != count) {
    return SlotMismatch(c, "X",
                        absl::StrCat("an extent of ", count, " along axis ",
                                     axis, ", one for each output"),
                        "name as many outputs as there are slices");
  }
  out.erase(out.begin() + axis);
  for (int i = 0; i < count; ++i) c.SetOutput("Y", out, i);
  return absl::OkStatus();
}

absl::Status GradUnstack(GradContext& g) {
  HT_ASSIGN_OR_RETURN(const auto grads, ListGrads(g, "Y"));
  return g.SetGrad("X",
                   g.Emit("stack").In("X", grads).Attr("axis", g.Attr("axis")));
}

void RegisterConcat(OpRegistry& registry) {
  registry.Add(ShapeSchema("concat", "Out = all X, one after the other.", kList)
                   .Attr("axis", int64_t{0}, "along which they are joined")
                   .Layout(LayoutRule::kChannelsLastOk)
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
                   .Layout(LayoutRule::kChannelsLastOk)
                   .Infer(InferConcatGrad)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kClear));
}

void RegisterParts(OpRegistry& registry) {
  registry.Add(
      ShapeSchema("split", "Out = the parts of X, one after the other.",
                  kRequired, "X", "Out", kList)
          .Attr("axis", int64_t{0}, "along which X is cut")
          .Attr("num", int64_t{0}, "so many equal parts; 0: one per output")
          .Attr("sections", Axes(), "extents of the parts; []: equal ones")
          .Layout(LayoutRule::kChannelsLastOk)
          .Infer(InferSplit)
          .Grad(GradSplit));
  registry.Add(
      ShapeSchema("stack", "Y = all X along a new axis.", kList, "X", "Y")
          .Attr("axis", int64_t{0}, "of Y; negative: from the end")
          .Infer(InferStack)
          .Grad(GradStack));
  registry.Add(ShapeSchema("unstack", "Y = the slices of X along axis.",
                           kRequired, "X", "Y", kList)
                   .Attr("axis", int64_t{0}, "that goes")
                   .Attr("num", int64_t{0}, "its extent; 0: one per output")
                   .Infer(InferUnstack)
                   .Grad(GradUnstack));
}

}  // namespace

void RegisterJoin(OpRegistry& registry) {
  RegisterConcat(registry);
  RegisterParts(registry);
}

}  // namespace ops
}  // namespace halftone
