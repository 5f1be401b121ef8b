#include "graph/schema/test_ops.h"

#include "graph/base/dtype.h"
#include "graph/schema/grad_context.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

absl::Status InferNothing(InferContext&) { return absl::OkStatus(); }

absl::Status InferMatmul(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const Dims& y = c.Input("Y").dims;
  if (x.size() != 2 || y.size() != 2 || x[1] != y[0]) {
    return c.SlotError("Y", "[K,N] with X's K");
  }
  c.SetOutput("Out", {x[0], y[1]});
  c.SetOutput("Rows", {x[0]});
  return absl::OkStatus();
}

absl::Status InferLikeX(InferContext& c) {
  c.SetOutput("Out", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status InferLikeList(InferContext& c) {
  for (int i = 0; i < c.OutputCount("Out"); ++i) {
    c.SetOutput("Out", c.InputList("X")[i].dims, i);
  }
  return absl::OkStatus();
}

absl::Status InferGrow(InferContext& c) {
  c.SetOutput("Out", {c.Int("by"), c.Int("by")});
  return absl::OkStatus();
}

absl::Status InferRelayout(InferContext& c) {
  c.SetOutput("Out", c.Input("X").dims);
  c.SetOutputLayout("Out", c.Bool("channels_last") ? Layout::kChannelsLast
                                                   : Layout::kRowMajor);
  return absl::OkStatus();
}

absl::Status GradMatmul(GradContext& g) {
  if (g.Wants("X")) {
    HT_RETURN_IF_ERROR(g.SetGrad(
        "X", g.Emit("like").In("X", g.Input("X")).In("Of", g.OutGrad("Out"))));
  }
  if (g.Wants("Y")) {
    HT_RETURN_IF_ERROR(g.SetGrad("Y", g.Emit("like")
                                          .In("X", g.Input("Y"))
                                          .Attr("scale", g.Attr("alpha"))
                                          .Out("Out", "given")));
  }
  return absl::OkStatus();
}

absl::Status GradSum(GradContext& g) {
  for (int i = 0; i < g.InputCount("X"); ++i) {
    if (g.Wants("X", i)) g.SetGrad("X", g.OutGrad("Out"), i);
  }
  return absl::OkStatus();
}

void RegisterMatmul(OpRegistry& registry) {
  registry.Add(OpSchema("matmul")
                   .Doc("Out = X * Y.")
                   .TypeVar("T", kFloatTypes)
                   .TypeVar("TOut", kFloatTypes, "T")
                   .In("X", "T", "[M,K]")
                   .In("Y", "T", "[K,N]")
                   .In("Bias", "T", "[N]", kOptional)
                   .Out("Out", "TOut", "[M,N]")
                   .Out("Rows", "TOut", "[M]", kOptional)
                   .Attr("trans_x", false, "transpose X")
                   .Attr("alpha", 1.0, "factor")
                   .Attr("axes", std::vector<int64_t>{}, "axes")
                   .Attr("mode", "plain", "plain | fancy")
                   .Infer(InferMatmul)
                   .Grad(GradMatmul)
                   .Amp(AmpClass::kWhite)
                   .AmpWhere("mode", "fancy", AmpClass::kBlack)
                   .Accumulate(DType::kF32));
  registry.AddAlias("matmul_v2", "matmul");
}

void RegisterSmall(OpRegistry& registry) {
  registry.Add(OpSchema("cast")
                   .Doc("Out = X as another type.")
                   .TypeVar("TIn", kAnyTypes)
                   .TypeVar("TOut", kAnyTypes)
                   .In("X", "TIn", "any dims")
                   .Out("Out", "TOut", "X's dims")
                   .RequiredAttr("to", AttrKind::kDType, "type of Out")
                   .Infer(InferLikeX)
                   .NoGrad()
                   .Layout(LayoutRule::kAny)
                   .Amp(AmpClass::kClear));
  registry.Add(OpSchema("like")
                   .Doc("As X; only the dims of Of are read.")
                   .TypeVar("T", kFloatTypes)
                   .In("X", "T", "any dims")
                   .In("Of", "T", "any dims", kShapeOnly | kOptional)
                   .Out("Out", "T", "X's dims")
                   .Attr("scale", 1.0, "factor")
                   .Infer(InferLikeX)
                   .NoGrad()
                   .Layout(LayoutRule::kAny)
                   .ElementWise()
                   .Amp(AmpClass::kGray));
  registry.Add(OpSchema("fill")
                   .Doc("Dims by,by of type `dtype`.")
                   .TypeVar("T", kFloatTypes)
                   .Out("Out", "T", "[by,by]")
                   .Attr("by", int64_t{2}, "dim")
                   .Attr("dtype", DType::kF32, "type of Out")
                   .StreamAttr("stream")
                   .Infer(InferGrow)
                   .NoGrad()
                   .Amp(AmpClass::kGray));
  registry.Add(OpSchema("open")
                   .Doc("An output type that nothing but Bind gives.")
                   .TypeVar("T", kFloatTypes)
                   .Out("Out", "T", "[]")
                   .Infer(InferNothing)
                   .NoGrad()
                   .Amp(AmpClass::kGray));
}

void RegisterListsAndStates(OpRegistry& registry) {
  registry.Add(OpSchema("sum")
                   .Doc("Members of X, each for itself.")
                   .TypeVar("T", kFloatTypes)
                   .In("X", "T", "members", kList)
                   .Out("Out", "T", "members' dims", kList)
                   .MayAlias("Out", "X")
                   .Infer(InferLikeList)
                   .Grad(GradSum)
                   .Layout(LayoutRule::kAny)
                   .Amp(AmpClass::kGray));
  registry.Add(OpSchema("update")
                   .Doc("A guarded update that needs seed and clock.")
                   .In("X", "f32", "any dims")
                   .In("FoundInf", "bool", "[]")
                   .ImplicitIn("Seed", "i64", "@seed")
                   .ImplicitIn("Clock", "i64", "@applied")
                   .Out("Out", "f32", "X's dims")
                   .MayAlias("Out", "X")
                   .Infer(InferLikeX)
                   .NoGrad()
                   .Guarded()
                   .NoMerge()
                   .Amp(AmpClass::kBlack));
  registry.Add(OpSchema("fusion")
                   .Doc("Anything in, anything out.")
                   .In("X", "", "arguments", kList | kMixed)
                   .Out("Out", "", "results", kList | kMixed)
                   .Infer(InferNothing)
                   .NoGrad()
                   .Amp(AmpClass::kGray));
  registry.Add(OpSchema("relayout")
                   .Doc("Another order of elements.")
                   .TypeVar("T", kAnyTypes)
                   .In("X", "T", "4-d")
                   .Out("Out", "T", "X's dims")
                   .Attr("channels_last", true, "or row-major")
                   .Infer(InferRelayout)
                   .NoGrad()
                   .Amp(AmpClass::kClear));
}

}  // namespace

TensorType MakeType(DType dtype, Dims dims, Layout layout) {
  TensorType type;
  type.dtype = dtype;
  type.layout = layout;
  type.dims = dims;
  return type;
}

void RegisterAllOps(OpRegistry& registry) {
  RegisterMatmul(registry);
  RegisterSmall(registry);
  RegisterListsAndStates(registry);
}

}  // namespace halftone
