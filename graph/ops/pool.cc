// Pooling over images of 1, 2 or 3 spatial dims.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/windows.h"

namespace halftone {
namespace ops {
namespace {

// The dims of Out for an X of these dims.
absl::StatusOr<Dims> PooledDims(const InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const int spatial = static_cast<int>(x.size()) - 2;
  Dims out = {x[0], x[1]};
  if (c.Bool("global_pooling")) {
    if (c.Bool("adaptive")) {
      return AttrMismatch(c, "adaptive", "false beside global_pooling",
                          "global_pooling has one window, adaptive as many as "
                          "ksize says");
    }
    out.resize(x.size(), Dim(1));
    return out;
  }
  HT_ASSIGN_OR_RETURN(const auto kernel, ReadSizes(c, "ksize", spatial, 1));
  if (c.Bool("adaptive")) {
    for (const int64_t size : kernel) out.push_back(Dim(size));
    return out;
  }
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c, spatial));
  for (int i = 0; i < spatial; ++i) {
    Window window = attrs.Along(i, kernel[i]);
    window.ceil = c.Bool("ceil_mode");
    window.ceil_anywhere = c.Str("ceil_windows") == "all";
    if (window.before >= window.kernel || window.after >= window.kernel) {
      return AttrMismatch(c, "paddings", "less than ksize",
                          "a window of padding alone has no result");
    }
    const auto size = WindowOutput(x[2 + i], window);
    if (!size.has_value()) {
      const std::string dims = SpatialAnd(spatial);
      return SlotMismatch(
          c, "X",
          x[2 + i].is_constant()
              ? absl::StrCat(dims,
                             " that with their paddings hold a window of ksize")
              : absl::StrCat("constant ", dims),
          x[2 + i].is_constant()
              ? "use a smaller ksize, or global_pooling"
              : "symbolic ones need global_pooling, or strides of 1 and "
                "paddings that keep the size");
    }
    out.push_back(*size);
  }
  return out;
}

// The same, of what is checked first.
absl::StatusOr<Dims> CheckedDims(const InferContext& c, int spatial) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", spatial + 2, ImageText(spatial)));
  if (c.schema().FindAttr("pooling_type") >= 0) {
    HT_RETURN_IF_ERROR(ExpectWord(c, "pooling_type", {"max", "avg"}));
  }
  HT_RETURN_IF_ERROR(ExpectWord(c, "ceil_windows", {"inside", "all"}));
  return PooledDims(c);
}

absl::Status InferPool(InferContext& c, int spatial) {
  HT_ASSIGN_OR_RETURN(Dims out, CheckedDims(c, spatial));
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferPoolGrad(InferContext& c, int spatial) {
  HT_ASSIGN_OR_RETURN(const Dims out, CheckedDims(c, spatial));
  HT_RETURN_IF_ERROR(ExpectDims(c, "Out", out, "those of X, pooled"));
  HT_RETURN_IF_ERROR(ExpectDims(c, "OutGrad", out, "those of Out"));
  c.SetOutput("XGrad", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status GradPool(GradContext& g, int spatial) {
  return g.SetGrad("X", g.Emit(absl::StrCat("pool", spatial, "d_grad"))
                            .AttrsOf(g.op())
                            .In("X", g.Input("X"))
                            .In("Out", g.Output("Out"))
                            .In("OutGrad", g.OutGrad("Out")));
}

OpSchema& AddPoolAttrs(OpSchema& schema, int spatial) {
  schema.Attr(
      "ksize", std::vector<int64_t>(spatial, 2),
      absl::StrCat(SpatialNames(spatial), " of a window; adaptive: of Out"));
  return AddWindowAttrs(schema, spatial)
      .Attr("global_pooling", false,
            absl::StrCat("one window, all of ", SpatialAnd(spatial),
                         "; ksize, strides and paddings do not count"))
      .Attr("adaptive", false,
            "window o of n goes from floor(o * H / n) to ceil((o + 1) * H / "
            "n); strides, paddings and ceil_mode do not count")
      .Attr("ceil_mode", false, "a last window that lies partly outside counts")
      .Attr("ceil_windows", std::string("inside"),
            "of these, inside: if it starts inside the image or the padding "
            "before it (PyTorch); all: wherever it starts (Paddle), where one "
            "without an element has the lowest f32 as maximum, and 0 divided "
            "by its size as mean");
}

// With X, its class and its layouts.
OpSchema ImageSchema(const std::string& name, absl::string_view doc,
                     int spatial) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("X", "T", ImageText(spatial))
      .Amp(AmpClass::kClear)
      .Accumulate(DType::kF32)
      .Layout(spatial == 2 ? LayoutRule::kChannelsLastOk
                           : LayoutRule::kRowMajor);
  return schema;
}

OpSchema PoolSchema(const std::string& name, absl::string_view doc,
                    int spatial) {
  OpSchema schema = ImageSchema(name, doc, spatial);
  schema.Attr("pooling_type", std::string("max"), "max or avg")
      .AmpWhere("pooling_type", "avg", AmpClass::kGray);
  return AddPoolAttrs(schema, spatial)
      .Attr("exclusive", true,
            "avg divides by the elements inside the image; else padding "
            "counts, too");
}

void RegisterPoolOf(int spatial, OpRegistry& registry) {
  const std::string name = absl::StrCat("pool", spatial, "d");
  const auto infer = [spatial](InferContext& c) {
    return InferPool(c, spatial);
  };
  const auto grad = [spatial](GradContext& g) { return GradPool(g, spatial); };
  const std::string pooled = ImageText(spatial, "C", "O");
  registry.Add(PoolSchema(name,
                          "Out = the maximum or mean of each window of X; "
                          "padding never is a maximum.",
                          spatial)
                   .Out("Out", "T", pooled)
                   .Infer(infer)
                   .Grad(grad));
  registry.Add(
      PoolSchema(absl::StrCat(name, "_grad"),
                 absl::StrCat("The gradient of ", name,
                              ". max: the first maximum of a window in "
                              "row-major order takes its gradient."),
                 spatial)
          .In("Out", "T", absl::StrCat("of ", name))
          .In("OutGrad", "T", "dims of Out")
          .Out("XGrad", "T", "dims of X")
          .Infer(
              [spatial](InferContext& c) { return InferPoolGrad(c, spatial); })
          .NoGrad()
          .Internal());
  if (spatial == 1) return;
  OpSchema indexed = ImageSchema(
      absl::StrCat("max_", name, "_with_index"),
      absl::StrCat(name,
                   " with the maximum. Where the maxima lie, Paddle's "
                   "Mask, is no output. White in Paddle's lists, clear here "
                   "as any other maximum."),
      spatial);
  AddPoolAttrs(indexed, spatial)
      .Out("Out", "T", pooled)
      .Infer(infer)
      .Grad(grad);
  registry.Add(std::move(indexed));
}

}  // namespace

void RegisterPool(OpRegistry& registry) {
  for (const int spatial : {2, 1, 3}) RegisterPoolOf(spatial, registry);
}

}  // namespace ops
}  // namespace halftone
