// Pooling over images of 1, 2 or 3 spatial dims.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/conv_schema.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/windows.h"

namespace halftone {
namespace ops {
namespace {

// The windows along each spatial dim, of ops without global and adaptive ones.
absl::StatusOr<std::vector<Window>> Windows(const InferContext& c,
                                            int spatial) {
  HT_ASSIGN_OR_RETURN(const auto kernel, ReadSizes(c, "ksize", spatial, 1));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c, spatial));
  std::vector<Window> windows;
  for (int i = 0; i < spatial; ++i) {
    Window window = attrs.Along(i, kernel[i]);
    window.ceil = c.Bool("ceil_mode");
    window.ceil_anywhere = c.Str("ceil_windows") == "all";
    if (window.before >= window.kernel || window.after >= window.kernel) {
      return AttrMismatch(c, "paddings", "less than ksize",
                          "a window of padding alone has no result");
    }
    windows.push_back(window);
  }
  return windows;
}

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
  if (c.Bool("adaptive")) {
    HT_ASSIGN_OR_RETURN(const auto sizes, ReadSizes(c, "ksize", spatial, 1));
    for (const int64_t size : sizes) out.push_back(Dim(size));
    return out;
  }
  HT_ASSIGN_OR_RETURN(const auto windows, Windows(c, spatial));
  for (int i = 0; i < spatial; ++i) {
    const auto size = WindowOutput(x[2 + i], windows[i]);
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

// That a window's elements can be numbered, of attributes that were checked.
absl::Status ExpectFewElements(const InferContext& c) {
  constexpr absl::string_view kArgmax = "Argmax is of windows of ksize";
  for (const char* attr : {"global_pooling", "adaptive"}) {
    if (c.Bool(attr)) return AttrMismatch(c, attr, "false", kArgmax);
  }
  if (c.schema().FindAttr("pooling_type") >= 0 &&
      c.Str("pooling_type") != "max") {
    return AttrMismatch(c, "pooling_type", "max", "a mean has no Argmax");
  }
  int64_t elements = 1;
  for (const int64_t size : c.Ints("ksize")) {
    if (size > kNoArgmax / elements) {
      return AttrMismatch(
          c, "ksize",
          absl::StrCat("windows of at most ", kNoArgmax, " elements"),
          "Argmax numbers them in a byte");
    }
    elements *= size;
  }
  return absl::OkStatus();
}

absl::Status InferPool(InferContext& c, int spatial) {
  HT_ASSIGN_OR_RETURN(Dims out, CheckedDims(c, spatial));
  if (c.OutputCount("Argmax") > 0) {
    HT_RETURN_IF_ERROR(ExpectFewElements(c));
    c.SetOutput("Argmax", out);
  }
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

absl::Status InferMaxPoolGrad(InferContext& c, int spatial) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "OutGrad", spatial + 2, ImageText(spatial)));
  const Dims& out = c.Input("OutGrad").dims;
  HT_RETURN_IF_ERROR(ExpectDims(c, "Argmax", out, "those of OutGrad"));
  HT_RETURN_IF_ERROR(ExpectWord(c, "ceil_windows", {"inside", "all"}));
  const std::string attr = SizeAttr("input", spatial);
  HT_ASSIGN_OR_RETURN(const auto sizes, ReadSizes(c, attr, spatial, -1));
  HT_ASSIGN_OR_RETURN(const auto windows, Windows(c, spatial));
  Dims x = {out[0], out[1]};
  for (int i = 0; i < spatial; ++i) {
    x.push_back(sizes[i] == -1 ? out[2 + i] : Dim(sizes[i]));
    if (WindowOutput(x[2 + i], windows[i]) != out[2 + i]) {
      return SlotMismatch(
          c, "OutGrad",
          absl::StrCat("the dims of ", attr, ", pooled with these attributes"));
    }
  }
  c.SetOutput("XGrad", std::move(x));
  return absl::OkStatus();
}

absl::Status GradMaxPool(GradContext& g, int spatial) {
  std::vector<int64_t> sizes;
  const Dims& x = g.type(g.Input("X")).dims;
  for (int i = 0; i < spatial; ++i) {
    sizes.push_back(x[2 + i].is_constant() ? x[2 + i].coefficient() : -1);
  }
  return g.SetGrad("X", g.Emit(absl::StrCat("max_pool", spatial, "d_grad"))
                            .AttrsOf(g.op())
                            .In("OutGrad", g.OutGrad("Out"))
                            .In("Argmax", g.Output("Argmax"))
                            .Attr(SizeAttr("input", spatial), sizes));
}

absl::Status GradPool(GradContext& g, int spatial) {
  const Op& op = g.op();
  if (op.outputs.has(op.schema->FindOutput("Argmax"))) {
    return GradMaxPool(g, spatial);
  }
  return g.SetGrad("X", g.Emit(absl::StrCat("pool", spatial, "d_grad"))
                            .AttrsOf(g.op())
                            .In("X", g.Input("X"))
                            .In("Out", g.Output("Out"))
                            .In("OutGrad", g.OutGrad("Out")));
}

OpSchema& AddCeilAttrs(OpSchema& schema) {
  return schema
      .Attr("ceil_mode", false, "a last window that lies partly outside counts")
      .Attr("ceil_windows", std::string("inside"),
            "of these, inside: if it starts inside the image or the padding "
            "before it (PyTorch); all: wherever it starts (Paddle), where one "
            "without an element has the lowest f32 as maximum, and 0 divided "
            "by its size as mean");
}

OpSchema& AddPoolAttrs(OpSchema& schema, int spatial) {
  schema.Attr(
      "ksize", std::vector<int64_t>(spatial, 2),
      absl::StrCat(SpatialNames(spatial), " of a window; adaptive: of Out"));
  AddWindowAttrs(schema, spatial)
      .Attr("global_pooling", false,
            absl::StrCat("one window, all of ", SpatialAnd(spatial),
                         "; ksize, strides and paddings do not count"))
      .Attr("adaptive", false,
            "window o of n goes from floor(o * H / n) to ceil((o + 1) * H / "
            "n); strides, paddings and ceil_mode do not count");
  return AddCeilAttrs(schema);
}

// With its first input, its class and its layouts.
OpSchema ImageSchema(const std::string& name, absl::string_view doc,
                     int spatial, absl::string_view slot,
                     absl::string_view slot_doc) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In(slot, "T", slot_doc)
      .Amp(AmpClass::kClear)
      .Accumulate(DType::kF32)
      .Layout(spatial == 2 ? LayoutRule::kChannelsLastOk
                           : LayoutRule::kRowMajor);
  return schema;
}

OpSchema PoolSchema(const std::string& name, absl::string_view doc,
                    int spatial) {
  OpSchema schema = ImageSchema(name, doc, spatial, "X", ImageText(spatial));
  schema.Attr("pooling_type", std::string("max"), "max or avg")
      .AmpWhere("pooling_type", "avg", AmpClass::kGray);
  return AddPoolAttrs(schema, spatial)
      .Attr("exclusive", true,
            "avg divides by the elements inside the image; else padding "
            "counts, too");
}

// Of windows of which an Argmax tells.
OpSchema MaxPoolGradSchema(const std::string& name, int spatial) {
  OpSchema schema = ImageSchema(
      absl::StrCat("max_", name, "_grad"),
      absl::StrCat("The gradient of ", name, " with the maximum, or of max_",
                   name,
                   "_with_index, from its Argmax: where that points takes the "
                   "gradient of the window."),
      spatial, "OutGrad", ImageText(spatial, "C", "O"));
  schema.In("Argmax", "u8", "dims of OutGrad")
      .Attr("ksize", std::vector<int64_t>(spatial, 2),
            absl::StrCat(SpatialNames(spatial), " of a window"));
  AddWindowAttrs(schema, spatial);
  AddCeilAttrs(schema)
      .RequiredAttr(SizeAttr("input", spatial), AttrKind::kInts,
                    absl::StrCat(SpatialNames(spatial),
                                 " of X; -1: symbolic, and the same as "
                                 "OutGrad's"))
      .Out("XGrad", "T", ImageText(spatial))
      .Infer(
          [spatial](InferContext& c) { return InferMaxPoolGrad(c, spatial); })
      .NoGrad()
      .Internal();
  return schema;
}

// Adds what of one op of maxima or means is registered.
void AddForward(OpSchema schema, int spatial, OpRegistry& registry) {
  schema.Out("Out", "T", ImageText(spatial, "C", "O"))
      .Out("Argmax", "u8",
           absl::StrCat("dims of Out: where the first maximum lies, its "
                        "row-major place among the elements of a window of "
                        "ksize, those in the padding counted; ",
                        kNoArgmax,
                        ": the window has none. Of no mean, and of no windows "
                        "of more elements or other sizes"),
           kOptional)
      .Infer([spatial](InferContext& c) { return InferPool(c, spatial); })
      .Grad([spatial](GradContext& g) { return GradPool(g, spatial); });
  registry.Add(std::move(schema));
}

void RegisterPoolOf(int spatial, OpRegistry& registry) {
  const std::string name = absl::StrCat("pool", spatial, "d");
  AddForward(PoolSchema(name,
                        "Out = the maximum or mean of each window of X; "
                        "padding never is a maximum.",
                        spatial),
             spatial, registry);
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
  registry.Add(MaxPoolGradSchema(name, spatial));
  if (spatial == 1) return;
  OpSchema indexed = ImageSchema(
      absl::StrCat("max_", name, "_with_index"),
      absl::StrCat(name,
                   " with the maximum. Where the maxima lie in X, Paddle's "
                   "Mask, is no output. White in Paddle's lists, clear here "
                   "as any other maximum."),
      spatial, "X", ImageText(spatial));
  AddForward(std::move(AddPoolAttrs(indexed, spatial)), spatial, registry);
}

}  // namespace

void RegisterPool(OpRegistry& registry) {
  for (const int spatial : {2, 1, 3}) RegisterPoolOf(spatial, registry);
}

}  // namespace ops
}  // namespace halftone
