// Pooling over NCHW images.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

// The dims of Out for an X of these dims.
absl::StatusOr<Dims> PooledDims(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, "[N, C, H, W]"));
  HT_RETURN_IF_ERROR(ExpectWord(c, "pooling_type", {"max", "avg"}));
  HT_RETURN_IF_ERROR(ExpectWord(c, "ceil_windows", {"inside", "all"}));
  const Dims& x = c.Input("X").dims;
  Dims out = {x[0], x[1]};
  if (c.Bool("global_pooling")) {
    if (c.Bool("adaptive")) {
      return AttrMismatch(c, "adaptive", "false beside global_pooling",
                          "global_pooling has one window, adaptive as many as "
                          "ksize says");
    }
    out.resize(4, Dim(1));
    return out;
  }
  HT_ASSIGN_OR_RETURN(const auto kernel, ReadPair(c, "ksize", 1));
  if (c.Bool("adaptive")) {
    out.push_back(Dim(kernel[0]));
    out.push_back(Dim(kernel[1]));
    return out;
  }
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c));
  for (int i = 0; i < 2; ++i) {
    Window window;
    window.kernel = kernel[i];
    window.stride = attrs.strides[i];
    window.before = attrs.paddings[2 * i];
    window.after = attrs.paddings[2 * i + 1];
    window.ceil = c.Bool("ceil_mode");
    window.ceil_anywhere = c.Str("ceil_windows") == "all";
    if (window.before >= window.kernel || window.after >= window.kernel) {
      return AttrMismatch(c, "paddings", "less than ksize",
                          "a window of padding alone has no result");
    }
    const auto size = WindowOutput(x[2 + i], window);
    if (!size.has_value()) {
      return SlotMismatch(
          c, "X",
          x[2 + i].is_constant()
              ? "H and W that with their paddings hold a window of ksize"
              : "constant H and W",
          x[2 + i].is_constant()
              ? "use a smaller ksize, or global_pooling"
              : "symbolic ones need global_pooling, or strides of 1 and "
                "paddings that keep the size");
    }
    out.push_back(*size);
  }
  return out;
}

absl::Status InferPool(InferContext& c) {
  HT_ASSIGN_OR_RETURN(Dims out, PooledDims(c));
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferPoolGrad(InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Dims out, PooledDims(c));
  HT_RETURN_IF_ERROR(ExpectDims(c, "Out", out, "those of X, pooled"));
  HT_RETURN_IF_ERROR(ExpectDims(c, "OutGrad", out, "those of Out"));
  c.SetOutput("XGrad", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status GradPool(GradContext& g) {
  return g.SetGrad("X", g.Emit("pool2d_grad")
                            .AttrsOf(g.op())
                            .In("X", g.Input("X"))
                            .In("Out", g.Output("Out"))
                            .In("OutGrad", g.OutGrad("Out")));
}

OpSchema PoolSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "[N, C, H, W]")
      .Attr("pooling_type", std::string("max"), "max or avg")
      .Attr("ksize", std::vector<int64_t>{2, 2},
            "height, width of a window; adaptive: of Out")
      .Attr("strides", std::vector<int64_t>{1, 1}, "height, width")
      .Attr("paddings", std::vector<int64_t>{0, 0},
            "height, width; or top, bottom, left, right")
      .Attr("global_pooling", false,
            "one window, all of H and W; ksize, strides and paddings do not "
            "count")
      .Attr("adaptive", false,
            "window o of n goes from floor(o * H / n) to ceil((o + 1) * H / "
            "n); strides, paddings and ceil_mode do not count")
      .Attr("ceil_mode", false, "a last window that lies partly outside counts")
      .Attr("ceil_windows", std::string("inside"),
            "of these, inside: if it starts inside the image or the padding "
            "before it (PyTorch); all: wherever it starts (Paddle), where one "
            "without an element has the lowest f32 as maximum, and 0 divided "
            "by its size as mean")
      .Attr("exclusive", true,
            "avg divides by the elements inside the image; else padding "
            "counts, too")
      .Amp(AmpClass::kClear)
      .AmpWhere("pooling_type", "avg", AmpClass::kGray)
      .Accumulate(DType::kF32)
      .Layout(LayoutRule::kChannelsLastOk);
  return schema;
}

}  // namespace

void RegisterPool(OpRegistry& registry) {
  registry.Add(PoolSchema("pool2d",
                          "Out = the maximum or mean of each window of X; "
                          "padding never is a maximum.")
                   .Out("Out", "T", "[N, C, OH, OW]")
                   .Infer(InferPool)
                   .Grad(GradPool));
  registry.Add(PoolSchema("pool2d_grad",
                          "The gradient of pool2d. max: the first maximum of "
                          "a window in row-major order takes its gradient.")
                   .In("Out", "T", "of pool2d")
                   .In("OutGrad", "T", "dims of Out")
                   .Out("XGrad", "T", "dims of X")
                   .Infer(InferPoolGrad)
                   .NoGrad()
                   .Internal());
}

}  // namespace ops
}  // namespace halftone
