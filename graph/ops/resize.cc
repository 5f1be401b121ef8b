// Images in other sizes: interpolation over 1, 2 or 3 spatial dims, and
// channels that become pixels.
#include <cmath>
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

// ---- Interpolation.

constexpr const char* kSizes[] = {"out_d", "out_h", "out_w"};
constexpr int64_t kMaxSize = (int64_t{1} << 31) - 1;

// The i-th spatial dim's scale; 0: out_d, out_h or out_w count.
absl::StatusOr<double> Scale(const InferContext& c, int spatial, int i) {
  const auto& scale = std::get<std::vector<double>>(c.Attr("scale"));
  if (scale.empty()) return 0.0;
  const int given = static_cast<int>(scale.size());
  if (given != 1 && given != spatial) {
    return AttrMismatch(c, "scale",
                        absl::StrCat("1 number or ", spatial, " (",
                                     SpatialNames(spatial), ")"));
  }
  for (const double s : scale) {
    if (!(s > 0) || !std::isfinite(s)) {
      return AttrMismatch(c, "scale", "finite numbers above 0");
    }
  }
  return scale[given == 1 ? 0 : i];
}

absl::StatusOr<Dim> ResizedDim(const InferContext& c, int spatial, int i) {
  const Dim& in = c.Input("X").dims[2 + i];
  if (!in.is_constant() || in.coefficient() < 1) {
    return SlotMismatch(
        c, "X", absl::StrCat("constant ", SpatialAnd(spatial), " from 1 up"));
  }
  HT_ASSIGN_OR_RETURN(const double scale, Scale(c, spatial, i));
  if (scale == 0) {
    const char* const attr = kSizes[3 - spatial + i];
    const int64_t size = c.Int(attr);
    if (size >= 1 && size <= kMaxSize) return Dim(size);
    return AttrMismatch(c, attr, "1 or more, or a scale");
  }
  // Paddle multiplies in f32.
  const double size = std::floor(static_cast<float>(in.coefficient()) *
                                 static_cast<float>(scale));
  if (size >= 1 && size <= static_cast<double>(kMaxSize)) {
    return Dim(static_cast<int64_t>(size));
  }
  return AttrMismatch(c, "scale", "one that leaves a size of 1 or more");
}

absl::StatusOr<Dims> ResizedDims(const InferContext& c, int low, int high) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", low + 2, high + 2,
                                low == high ? ImageText(low) : "[N, C, ...]"));
  if (c.Int("align_mode") != 0 && c.Int("align_mode") != 1) {
    return AttrMismatch(c, "align_mode", "0 or 1");
  }
  const Dims& x = c.Input("X").dims;
  const int spatial = static_cast<int>(x.size()) - 2;
  Dims out = {x[0], x[1]};
  for (int i = 0; i < spatial; ++i) {
    HT_ASSIGN_OR_RETURN(const Dim size, ResizedDim(c, spatial, i));
    out.push_back(size);
  }
  return out;
}

OpSchema ResizeSchema(const std::string& name, absl::string_view doc, int low,
                      int high) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .Attr("out_d", int64_t{-1}, "depth of Out, where scale is empty")
      .Attr("out_h", int64_t{-1}, "height of Out, where scale is empty")
      .Attr("out_w", int64_t{-1}, "width of Out, where scale is empty")
      .Attr("scale", std::vector<double>(),
            "sizes of Out by those of X, one for all dims or one for each; "
            "[]: out_d, out_h and out_w count")
      .Attr("align_corners", true,
            "the outer elements of X and Out lie on each other, not their "
            "edges")
      .Attr("align_mode", int64_t{1},
            "without align_corners, 0: elements lie in the middle of their "
            "cells (PyTorch); 1: at their beginning. Nearest: at their "
            "beginning")
      .Amp(AmpClass::kBlack)
      .Accumulate(DType::kF32)
      .Layout(low <= 2 && high >= 2 ? LayoutRule::kChannelsLastOk
                                    : LayoutRule::kRowMajor);
  return schema;
}

// `low` to `high` spatial dims.
void AddResize(const std::string& name, absl::string_view doc, int low,
               int high, OpRegistry& registry) {
  registry.Add(ResizeSchema(name, doc, low, high)
                   .In("X", "T", low == high ? ImageText(low) : "[N, C, ...]")
                   .Out("Out", "T", "X in other sizes")
                   .Infer([low, high](InferContext& c) -> absl::Status {
                     HT_ASSIGN_OR_RETURN(Dims out, ResizedDims(c, low, high));
                     c.SetOutput("Out", std::move(out));
                     return absl::OkStatus();
                   })
                   .Grad([name](GradContext& g) {
                     return g.SetGrad("X", g.Emit(absl::StrCat(name, "_grad"))
                                               .AttrsOf(g.op())
                                               .In("OutGrad", g.OutGrad("Out"))
                                               .In("X", g.Input("X")));
                   }));
  registry.Add(
      ResizeSchema(absl::StrCat(name, "_grad"),
                   absl::StrCat("The gradient of ", name, "."), low, high)
          .In("OutGrad", "T", "dims of Out")
          .In("X", "T", "its dims", kShapeOnly)
          .Out("XGrad", "T", "dims of X")
          .Infer([low, high](InferContext& c) -> absl::Status {
            HT_ASSIGN_OR_RETURN(const Dims out, ResizedDims(c, low, high));
            HT_RETURN_IF_ERROR(ExpectDims(c, "OutGrad", out, "those of Out"));
            c.SetOutput("XGrad", c.Input("X").dims);
            return absl::OkStatus();
          })
          .NoGrad()
          .Internal());
}

// ---- pixel_shuffle.

absl::StatusOr<Dim> Area(const InferContext& c) {
  const int64_t factor = c.Int("upscale_factor");
  if (factor >= 1 && factor < (1 << 15)) return Dim(factor * factor);
  return AttrMismatch(c, "upscale_factor", "1 to 32767");
}

absl::Status InferShuffle(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, ImageText(2)));
  HT_ASSIGN_OR_RETURN(const Dim area, Area(c));
  const Dims& x = c.Input("X").dims;
  const Dim factor(c.Int("upscale_factor"));
  Dim channels;
  if (!x[1].DivideBy(area, &channels)) {
    return SlotMismatch(c, "X", "C to be a multiple of upscale_factor squared");
  }
  c.SetOutput("Out", {x[0], channels, x[2] * factor, x[3] * factor});
  return absl::OkStatus();
}

absl::Status InferUnshuffle(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, ImageText(2)));
  HT_ASSIGN_OR_RETURN(const Dim area, Area(c));
  const Dims& x = c.Input("X").dims;
  const Dim factor(c.Int("upscale_factor"));
  Dim height, width;
  if (!x[2].DivideBy(factor, &height) || !x[3].DivideBy(factor, &width)) {
    return SlotMismatch(c, "X", "H and W to be multiples of upscale_factor");
  }
  c.SetOutput("Out", {x[0], x[1] * area, height, width});
  return absl::OkStatus();
}

OpSchema ShuffleSchema(const std::string& name, absl::string_view doc,
                       const std::string& gradient) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kAnyTypes)
      .In("X", "T", ImageText(2))
      .Out("Out", "T", "the elements of X")
      .Attr("upscale_factor", int64_t{1}, "pixels along H and along W")
      .Grad([gradient](GradContext& g) {
        return g.SetGrad(
            "X", g.Emit(gradient).AttrsOf(g.op()).In("X", g.OutGrad("Out")));
      })
      .Amp(AmpClass::kClear)
      .Layout(LayoutRule::kRowMajor);
  return schema;
}

}  // namespace

void RegisterResize(OpRegistry& registry) {
  const char* const kLinear =
      "Out = X in other sizes, its elements between the nearest ones of X in "
      "proportion to how near those are, along each dim. A single element of "
      "a dim is X's first, as Paddle has it, where PyTorch without "
      "align_corners takes the middle.";
  AddResize("linear_interp_v2", kLinear, 1, 1, registry);
  AddResize("bilinear_interp_v2", kLinear, 2, 2, registry);
  AddResize("trilinear_interp_v2", kLinear, 3, 3, registry);
  AddResize("nearest_interp_v2",
            "Out = X in other sizes, each of its elements one of X.", 1, 3,
            registry);
  AddResize(
      "bicubic_interp_v2",
      "Out = X in other sizes, each of its elements on the cubics through "
      "four of X along each dim (Keys, a = -3/4), those at the edges "
      "again beyond them. Without align_corners elements lie in the "
      "middle of their cells; a single one of a dim lies at -0.5, as Paddle "
      "has it, where PyTorch takes the middle.",
      2, 2, registry);
  registry.Add(
      ShuffleSchema("pixel_shuffle",
                    "Out = X with upscale_factor squared channels side by side "
                    "as the pixels of one: [N, C, H * factor, W * factor].",
                    "pixel_unshuffle")
          .Infer(InferShuffle));
  registry.Add(
      ShuffleSchema("pixel_unshuffle",
                    "Out = X with the pixels of each square of "
                    "upscale_factor as channels: pixel_shuffle undone.",
                    "pixel_shuffle")
          .Infer(InferUnshuffle));
}

}  // namespace ops
}  // namespace halftone
