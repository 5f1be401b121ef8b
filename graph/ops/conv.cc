// Convolutions over images of 1, 2 or 3 spatial dims, their channels and those
// of the filters first, and their gradients.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
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

// Errors of a window that does not fit `slot` along a dim.
absl::Status NoOutput(const InferContext& c, absl::string_view slot,
                      int spatial, bool symbolic) {
  const std::string dims = SpatialAnd(spatial);
  if (symbolic) {
    return SlotMismatch(c, slot, absl::StrCat("constant ", dims),
                        "symbolic ones need strides of 1 and paddings that "
                        "keep the size");
  }
  return SlotMismatch(
      c, slot, absl::StrCat(dims, " that with their paddings hold the filter"),
      "enlarge paddings or the image");
}

absl::Status InferConv(InferContext& c, int spatial, bool depthwise) {
  const std::string filter_text = FilterText(spatial, "O, C");
  HT_RETURN_IF_ERROR(ExpectRank(c, "Input", spatial + 2, ImageText(spatial)));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Filter", spatial + 2, filter_text));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c, spatial));
  HT_ASSIGN_OR_RETURN(const int64_t groups, Groups(c));
  const Dims& in = c.Input("Input").dims;
  const Dims& filter = c.Input("Filter").dims;
  if (depthwise && in[1] != Dim(groups)) {
    return AttrMismatch(
        c, "groups",
        absl::StrCat("the channels of Input, ", c.Print(c.Input("Input"))),
        absl::StrCat("or use ", ConvName(spatial)));
  }
  if (filter[1] * Dim(groups) != in[1]) {
    return SlotMismatch(c, "Filter",
                        absl::StrCat(filter_text, " with C / groups = ",
                                     PrintDims(c, {in[1]}), " / ", groups),
                        absl::StrCat("Input is ", c.Print(c.Input("Input"))));
  }
  Dim per_group;
  if (!filter[0].DivideBy(Dim(groups), &per_group)) {
    return SlotMismatch(c, "Filter",
                        absl::StrCat("O to be a multiple of groups = ", groups),
                        "change groups or the filter");
  }
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "Bias", {filter[0]}, "one per output channel of Filter"));
  Dims out = {in[0], filter[0]};
  for (int i = 0; i < spatial; ++i) {
    HT_RETURN_IF_ERROR(ExpectConstantFilter(c, filter[2 + i], spatial));
    const auto size =
        WindowOutput(in[2 + i], attrs.Along(i, filter[2 + i].coefficient()));
    if (!size.has_value()) {
      return NoOutput(c, "Input", spatial, !in[2 + i].is_constant());
    }
    out.push_back(*size);
  }
  c.SetOutput("Output", std::move(out));
  return absl::OkStatus();
}

// Sizes of what the gradient is of; -1: that of OutputGrad.
absl::Status InferConvGradInput(InferContext& c, int spatial) {
  HT_RETURN_IF_ERROR(
      ExpectRank(c, "OutputGrad", spatial + 2, ImageText(spatial, "O", "O")));
  HT_RETURN_IF_ERROR(
      ExpectRank(c, "Filter", spatial + 2, FilterText(spatial, "O, C")));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c, spatial));
  HT_ASSIGN_OR_RETURN(const int64_t groups, Groups(c));
  const std::string attr = SizeAttr("input", spatial);
  HT_ASSIGN_OR_RETURN(const auto sizes, ReadSizes(c, attr, spatial, -1));
  const Dims& out = c.Input("OutputGrad").dims;
  const Dims& filter = c.Input("Filter").dims;
  if (filter[0] != out[1]) {
    return SlotMismatch(
        c, "Filter",
        absl::StrCat("O = ", PrintDims(c, {out[1]}), " of OutputGrad"));
  }
  Dims in = {out[0], filter[1] * Dim(groups)};
  for (int i = 0; i < spatial; ++i) {
    HT_RETURN_IF_ERROR(ExpectConstantFilter(c, filter[2 + i], spatial));
    const Dim size = sizes[i] == -1 ? out[2 + i] : Dim(sizes[i]);
    const Window window = attrs.Along(i, filter[2 + i].coefficient());
    if (WindowOutput(size, window) != out[2 + i]) {
      return SlotMismatch(c, "OutputGrad",
                          absl::StrCat("the dims of the convolution of ", attr,
                                       " with these attributes"));
    }
    in.push_back(size);
  }
  c.SetOutput("InputGrad", std::move(in));
  return absl::OkStatus();
}

absl::Status InferConvGradFilter(InferContext& c, int spatial) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "Input", spatial + 2, ImageText(spatial)));
  HT_RETURN_IF_ERROR(
      ExpectRank(c, "OutputGrad", spatial + 2, ImageText(spatial, "O", "O")));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c, spatial));
  HT_ASSIGN_OR_RETURN(const int64_t groups, Groups(c));
  HT_ASSIGN_OR_RETURN(const auto sizes,
                      ReadSizes(c, SizeAttr("filter", spatial), spatial, 1));
  const Dims& in = c.Input("Input").dims;
  const Dims& out = c.Input("OutputGrad").dims;
  Dim per_group;
  if (!in[1].DivideBy(Dim(groups), &per_group)) {
    return SlotMismatch(
        c, "Input", absl::StrCat("C to be a multiple of groups = ", groups));
  }
  Dims filter = {out[1], per_group};
  for (int i = 0; i < spatial; ++i) {
    const auto size = WindowOutput(in[2 + i], attrs.Along(i, sizes[i]));
    if (in[0] != out[0] || size != out[2 + i]) {
      return SlotMismatch(
          c, "OutputGrad",
          "the dims of the convolution of Input with these attributes");
    }
    filter.push_back(Dim(sizes[i]));
  }
  c.SetOutput("FilterGrad", std::move(filter));
  return absl::OkStatus();
}

absl::Status GradConv(GradContext& g, int spatial) {
  HT_ASSIGN_OR_RETURN(const ValueId out_grad,
                      CastTo(g, g.OutGrad("Output"), InputDType(g, "Input")));
  HT_RETURN_IF_ERROR(GradConvBias(g, out_grad));
  if (g.Wants("Input")) {
    std::vector<int64_t> sizes;
    const Dims in = g.type(g.Input("Input")).dims;
    for (int i = 0; i < spatial; ++i) {
      sizes.push_back(in[2 + i].is_constant() ? in[2 + i].coefficient() : -1);
    }
    HT_RETURN_IF_ERROR(
        g.SetGrad("Input", g.Emit(ConvName(spatial, "_grad_input"))
                               .AttrsOf(g.op())
                               .In("OutputGrad", out_grad)
                               .In("Filter", g.Input("Filter"))
                               .Attr(SizeAttr("input", spatial), sizes)));
  }
  return GradConvFilter(g, g.Input("Input"), out_grad);
}

Dim ForwardFlops(const Block& block, const Op& op) {
  return ConvFlops(block, op.out(0), op.in(1));
}
Dim GradInputFlops(const Block& block, const Op& op) {
  return ConvFlops(block, op.in(0), op.in(1));
}
Dim GradFilterFlops(const Block& block, const Op& op) {
  return ConvFlops(block, op.in(1), op.out(0));
}

OpSchema ForwardSchema(const std::string& name, absl::string_view doc,
                       int spatial, bool depthwise) {
  OpSchema schema = ConvSchema(name, doc, spatial);
  schema.In("Input", "T", ImageText(spatial))
      .In("Filter", "T", FilterText(spatial, "O, C"))
      .In("Bias", "T", "[O]", kOptional)
      .Out("Output", "T", ImageText(spatial, "O", "O"))
      .Infer([spatial, depthwise](InferContext& c) {
        return InferConv(c, spatial, depthwise);
      })
      .Costs(Work::kProduct, ForwardFlops)
      .Grad([spatial](GradContext& g) { return GradConv(g, spatial); });
  AddConvAttrs(schema, spatial);
  return schema;
}

OpSchema GradInputSchema(int spatial) {
  OpSchema schema = ConvSchema(
      ConvName(spatial, "_grad_input"),
      absl::StrCat("The gradient of ", ConvName(spatial), "'s Input."),
      spatial);
  AddConvAttrs(schema, spatial)
      .In("OutputGrad", "T", ImageText(spatial, "O", "O"))
      .In("Filter", "T", FilterText(spatial, "O, C"))
      .Out("InputGrad", "T", ImageText(spatial))
      .RequiredAttr(SizeAttr("input", spatial), AttrKind::kInts,
                    absl::StrCat(spatial == 2 ? "height and width"
                                              : SpatialNames(spatial),
                                 " of Input; -1: symbolic, and the same as "
                                 "OutputGrad's"))
      .Infer(
          [spatial](InferContext& c) { return InferConvGradInput(c, spatial); })
      .Costs(Work::kDataGrad, GradInputFlops)
      .NoGrad()
      .Internal();
  return schema;
}

OpSchema GradFilterSchema(int spatial) {
  OpSchema schema = ConvSchema(
      ConvName(spatial, "_grad_filter"),
      absl::StrCat("The gradient of ", ConvName(spatial),
                   "'s Filter. FilterGrad has a type of its own, so that an "
                   "up-cast folds into it."),
      spatial);
  AddConvAttrs(schema, spatial)
      .TypeVar("TW", kFloatTypes, "T")
      .In("Input", "T", ImageText(spatial))
      .In("OutputGrad", "T", ImageText(spatial, "O", "O"))
      .Out("FilterGrad", "TW", FilterText(spatial, "O, C"))
      .Lossy("Input")
      .RequiredAttr(SizeAttr("filter", spatial), AttrKind::kInts,
                    absl::AsciiStrToLower(SpatialLetters(spatial, "k")))
      .Infer([spatial](InferContext& c) {
        return InferConvGradFilter(c, spatial);
      })
      .Costs(Work::kWeightGrad, GradFilterFlops)
      .NoGrad()
      .Internal();
  return schema;
}

}  // namespace

std::string ConvName(int spatial, absl::string_view after) {
  return absl::StrCat("conv", spatial, "d", after);
}

std::string FilterText(int spatial, absl::string_view before) {
  return absl::StrCat("[", before, " / groups, ",
                      absl::AsciiStrToLower(SpatialLetters(spatial, "k")), "]");
}

std::string SizeAttr(absl::string_view of, int spatial) {
  constexpr const char* kDims[] = {"w", "hw", "dhw"};
  return absl::StrCat(of, "_", kDims[spatial - 1]);
}

OpSchema ConvSchema(absl::string_view name, absl::string_view doc,
                    int spatial) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .Amp(AmpClass::kWhite)
      .Accumulate(DType::kF32)
      .Layout(spatial == 2 ? LayoutRule::kChannelsLastOk
                           : LayoutRule::kRowMajor);
  return schema;
}

OpSchema& AddConvAttrs(OpSchema& schema, int spatial) {
  return AddWindowAttrs(schema, spatial)
      .Attr("dilations", std::vector<int64_t>(spatial, 1),
            SpatialNames(spatial))
      .Attr("groups", int64_t{1},
            "input and output channels are split into this many groups, each "
            "convolved on its own");
}

absl::StatusOr<int64_t> Groups(const InferContext& c) {
  const int64_t groups = c.Int("groups");
  if (groups >= 1) return groups;
  return AttrMismatch(c, "groups", "1 or more");
}

absl::Status ExpectConstantFilter(const InferContext& c, const Dim& size,
                                  int spatial) {
  if (size.is_constant() && size.coefficient() >= 1) return absl::OkStatus();
  return SlotMismatch(
      c, "Filter",
      absl::StrCat("constant ", absl::AsciiStrToLower(SpatialAnd(spatial, "k")),
                   " from 1 up"),
      "a filter's size cannot vary");
}

absl::Status GradConvBias(GradContext& g, ValueId out_grad) {
  if (!g.Has("Bias") || !g.Wants("Bias")) return absl::OkStatus();
  std::vector<int64_t> dims = {0};
  for (int i = 2; i < g.type(out_grad).rank(); ++i) dims.push_back(i);
  return g.SetGrad("Bias",
                   g.Emit("reduce_sum").In("X", out_grad).Attr("dim", dims));
}

absl::Status GradConvFilter(GradContext& g, ValueId image, ValueId result) {
  if (!g.Wants("Filter")) return absl::OkStatus();
  const Dims filter = g.type(g.Input("Filter")).dims;
  const int spatial = static_cast<int>(filter.size()) - 2;
  std::vector<int64_t> sizes;
  for (int i = 0; i < spatial; ++i) {
    sizes.push_back(filter[2 + i].coefficient());
  }
  return g.SetGrad("Filter", g.Emit(ConvName(spatial, "_grad_filter"))
                                 .AttrsOf(g.op())
                                 .In("Input", image)
                                 .In("OutputGrad", result)
                                 .Attr(SizeAttr("filter", spatial), sizes));
}

Dim ConvFlops(const Block& block, ValueId elements, ValueId filter) {
  Dim flops = Dim(2) * block.type(elements).Elements();
  const Dims& dims = block.type(filter).dims;
  for (size_t i = 1; i < dims.size(); ++i) flops = flops * dims[i];
  return flops;
}

void RegisterConv(OpRegistry& registry) {
  for (const int spatial : {2, 1, 3}) {
    registry.Add(ForwardSchema(
        ConvName(spatial),
        "Output = Input convolved (cross-correlated) with Filter, + Bias per "
        "output channel.",
        spatial, /*depthwise=*/false));
    if (spatial == 2) {
      registry.Add(ForwardSchema("depthwise_conv2d",
                                 "conv2d in which every input channel is a "
                                 "group of its own: groups = C.",
                                 spatial, /*depthwise=*/true));
    }
    registry.Add(GradInputSchema(spatial));
    registry.Add(GradFilterSchema(spatial));
  }
  RegisterConvTranspose(registry);
}

}  // namespace ops
}  // namespace halftone
