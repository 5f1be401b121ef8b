// Transposed convolutions: what a convolution's Input gets as its gradient from
// its Output. Their own gradients are convolutions.
#include <algorithm>
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

// How many positions output_size or output_padding ask for beyond the least.
struct Extra {
  std::vector<int64_t> size, padding;  // empty: nothing
};

absl::StatusOr<Extra> ReadExtra(const InferContext& c, int spatial) {
  Extra extra;
  if (!c.Ints("output_size").empty()) {
    HT_ASSIGN_OR_RETURN(extra.size, ReadSizes(c, "output_size", spatial, 1));
  }
  if (!c.Ints("output_padding").empty()) {
    HT_ASSIGN_OR_RETURN(extra.padding,
                        ReadSizes(c, "output_padding", spatial, 0));
  }
  return extra;
}

// Along the i-th spatial dim. What strides leave out of the convolution that
// is transposed is all that may be added.
absl::StatusOr<Dim> OutputSize(const InferContext& c, int i, const Dim& in,
                               const Window& window, const Extra& extra) {
  const bool pads = extra.size.empty() && !extra.padding.empty();
  const int64_t more = pads ? std::min(extra.padding[i], window.stride) : 0;
  const auto least = WindowInput(in, window, more);
  if (!least.has_value()) {
    const int spatial = c.Input("Input").rank() - 2;
    const std::string dims = SpatialAnd(spatial);
    if (in.is_constant()) {
      return SlotMismatch(c, "Input",
                          absl::StrCat(dims, " that paddings leave a result"),
                          "use smaller paddings");
    }
    return SlotMismatch(c, "Input", absl::StrCat("constant ", dims),
                        "symbolic ones need strides of 1 and paddings that "
                        "keep the size");
  }
  if (!extra.size.empty()) {
    const int64_t low = least->is_constant() ? least->coefficient() : 0;
    if (least->is_constant() && extra.size[i] >= low &&
        extra.size[i] < low + window.stride) {
      return Dim(extra.size[i]);
    }
    return AttrMismatch(c, "output_size",
                        least->is_constant()
                            ? absl::StrCat(low, " to ", low + window.stride - 1,
                                           " along dim ", 2 + i)
                            : "nothing for a symbolic size");
  }
  // A symbolic size has strides of 1.
  if (more == 0 || more < window.stride) return *least;
  return AttrMismatch(c, "output_padding",
                      absl::StrCat("less than strides along dim ", 2 + i));
}

absl::Status InferConvTranspose(InferContext& c, int spatial, bool depthwise) {
  const std::string filter_text = FilterText(spatial, "C, O");
  HT_RETURN_IF_ERROR(ExpectRank(c, "Input", spatial + 2, ImageText(spatial)));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Filter", spatial + 2, filter_text));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c, spatial));
  HT_ASSIGN_OR_RETURN(const int64_t groups, Groups(c));
  HT_ASSIGN_OR_RETURN(const Extra extra, ReadExtra(c, spatial));
  const Dims& in = c.Input("Input").dims;
  const Dims& filter = c.Input("Filter").dims;
  if (depthwise && in[1] != Dim(groups)) {
    return AttrMismatch(
        c, "groups",
        absl::StrCat("the channels of Input, ", c.Print(c.Input("Input"))),
        absl::StrCat("or use ", ConvName(spatial, "_transpose")));
  }
  if (filter[0] != in[1]) {
    return SlotMismatch(
        c, "Filter",
        absl::StrCat(filter_text, " with C = ", PrintDims(c, {in[1]})),
        absl::StrCat("Input is ", c.Print(c.Input("Input"))));
  }
  Dim per_group;
  if (!in[1].DivideBy(Dim(groups), &per_group)) {
    return SlotMismatch(
        c, "Input", absl::StrCat("C to be a multiple of groups = ", groups));
  }
  const Dim channels = filter[1] * Dim(groups);
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "Bias", {channels}, "one per output channel of Filter"));
  Dims out = {in[0], channels};
  for (int i = 0; i < spatial; ++i) {
    HT_RETURN_IF_ERROR(ExpectConstantFilter(c, filter[2 + i], spatial));
    HT_ASSIGN_OR_RETURN(
        const Dim size,
        OutputSize(c, i, in[2 + i], attrs.Along(i, filter[2 + i].coefficient()),
                   extra));
    out.push_back(size);
  }
  c.SetOutput("Output", std::move(out));
  return absl::OkStatus();
}

absl::Status GradConvTranspose(GradContext& g, int spatial) {
  HT_ASSIGN_OR_RETURN(const ValueId out_grad,
                      CastTo(g, g.OutGrad("Output"), InputDType(g, "Input")));
  HT_RETURN_IF_ERROR(GradConvBias(g, out_grad));
  if (g.Wants("Input")) {
    HT_RETURN_IF_ERROR(
        g.SetGrad("Input", g.Emit(ConvName(spatial))
                               .AttrsOf(g.op())
                               .In("Input", out_grad)
                               .In("Filter", g.Input("Filter"))));
  }
  return GradConvFilter(g, out_grad, g.Input("Input"));
}

Dim TransposeFlops(const Block& block, const Op& op) {
  return ConvFlops(block, op.in(0), op.in(1));
}

OpSchema TransposeSchema(const std::string& name, absl::string_view doc,
                         int spatial, bool depthwise) {
  OpSchema schema = ConvSchema(name, doc, spatial);
  schema.In("Input", "T", ImageText(spatial))
      .In("Filter", "T", FilterText(spatial, "C, O"))
      .In("Bias", "T", "[O]", kOptional)
      .Out("Output", "T", ImageText(spatial, "O", "O"))
      .Infer([spatial, depthwise](InferContext& c) {
        return InferConvTranspose(c, spatial, depthwise);
      })
      .Costs(Work::kProduct, TransposeFlops)
      .Grad(
          [spatial](GradContext& g) { return GradConvTranspose(g, spatial); });
  AddConvAttrs(schema, spatial)
      .Attr("output_padding", std::vector<int64_t>(),
            absl::StrCat(SpatialNames(spatial),
                         ": added to the size of Output at its end, less than "
                         "strides; empty: nothing"))
      .Attr("output_size", std::vector<int64_t>(),
            absl::StrCat(SpatialNames(spatial),
                         " of Output, instead of output_padding; empty: the "
                         "least"));
  return schema;
}

}  // namespace

void RegisterConvTranspose(OpRegistry& registry) {
  for (const int spatial : {2, 1, 3}) {
    registry.Add(TransposeSchema(
        ConvName(spatial, "_transpose"),
        absl::StrCat("Output = the sum over each element of Input of Filter, "
                     "times it, at its window's place: the gradient of ",
                     ConvName(spatial), "'s Input; + Bias per output channel."),
        spatial, /*depthwise=*/false));
  }
  registry.Add(TransposeSchema(
      "depthwise_conv2d_transpose",
      "conv2d_transpose in which every input channel is a group of its own: "
      "groups = C.",
      2, /*depthwise=*/true));
}

}  // namespace ops
}  // namespace halftone
