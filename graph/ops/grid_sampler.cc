// Images sampled at places that a grid says: spatial transformers, optical
// flow, deformable attention.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/windows.h"

namespace halftone {
namespace ops {
namespace {

constexpr const char* kGridText = "[N, rows, columns, 2]: x, y";

// The dims of Output.
absl::StatusOr<Dims> SampledDims(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, ImageText(2)));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Grid", 4, kGridText));
  HT_RETURN_IF_ERROR(ExpectWord(c, "mode", {"bilinear", "nearest"}));
  HT_RETURN_IF_ERROR(
      ExpectWord(c, "padding_mode", {"zeros", "border", "reflection"}));
  const Dims &x = c.Input("X").dims, &grid = c.Input("Grid").dims;
  HT_RETURN_IF_ERROR(ExpectDims(c, "Grid", {x[0], grid[1], grid[2], Dim(2)},
                                "one grid for each of X"));
  return Dims{x[0], x[1], grid[1], grid[2]};
}

OpSchema SamplerSchema(const std::string& name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("X", "T", ImageText(2))
      .In("Grid", "T", kGridText)
      .Attr("align_corners", true,
            "-1 and 1 are the middles of the outer elements of X, not its "
            "edges")
      .Attr("mode", "bilinear",
            "or nearest: of halves between two the even one")
      .Attr("padding_mode", "zeros",
            "what lies beyond X: zeros, border (the outer elements again) or "
            "reflection")
      .Amp(AmpClass::kBlack)
      .Accumulate(DType::kF32)
      .Layout(LayoutRule::kRowMajor);
  return schema;
}

// grid_sampler_grad_<of>: the gradient of a slot.
void AddGradient(const std::string& slot, absl::string_view doc,
                 OpRegistry& registry) {
  registry.Add(
      SamplerSchema(
          absl::StrCat("grid_sampler_grad_", slot == "X" ? "input" : "grid"),
          doc)
          .In("OutputGrad", "T", "dims of Output")
          .Out(absl::StrCat(slot, "Grad"), "T", absl::StrCat("dims of ", slot))
          .Infer([slot](InferContext& c) -> absl::Status {
            HT_ASSIGN_OR_RETURN(const Dims out, SampledDims(c));
            HT_RETURN_IF_ERROR(
                ExpectDims(c, "OutputGrad", out, "those of Output"));
            c.SetOutput(absl::StrCat(slot, "Grad"), c.Input(slot).dims);
            return absl::OkStatus();
          })
          .NoGrad()
          .Internal());
}

absl::Status GradSampler(GradContext& g) {
  for (const char* slot : {"X", "Grid"}) {
    if (!g.Wants(slot)) continue;
    const char* const of = *slot == 'X' ? "input" : "grid";
    HT_RETURN_IF_ERROR(
        g.SetGrad(slot, g.Emit(absl::StrCat("grid_sampler_grad_", of))
                            .AttrsOf(g.op())
                            .In("X", g.Input("X"))
                            .In("Grid", g.Input("Grid"))
                            .In("OutputGrad", g.OutGrad("Output"))));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterGridSampler(OpRegistry& registry) {
  registry.Add(
      SamplerSchema("grid_sampler",
                    "Output[n, :, i, j] = X[n] at the place Grid[n, i, j]: its "
                    "column and row, from -1 to 1 across X, between the four "
                    "elements around it. Low precision cannot tell places of "
                    "large images apart: f32 under O1, as Paddle runs what is "
                    "in none of its lists.")
          .Out("Output", "T", "[N, C, rows, columns]")
          .Infer([](InferContext& c) -> absl::Status {
            HT_ASSIGN_OR_RETURN(Dims out, SampledDims(c));
            c.SetOutput("Output", std::move(out));
            return absl::OkStatus();
          })
          .Grad(GradSampler));
  AddGradient("X",
              "The gradient of grid_sampler's X: what each element gave, added "
              "in f32 in the order of Output's places and rounded once.",
              registry);
  AddGradient("Grid",
              "The gradient of grid_sampler's Grid, added over the channels in "
              "their order; 0 where X is clamped, and of nearest.",
              registry);
}

}  // namespace ops
}  // namespace halftone
