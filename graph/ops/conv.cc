// Convolutions over NCHW images with OIHW filters, and their gradients.
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

constexpr char kImage[] = "[N, C, H, W]";
constexpr char kFilter[] = "[O, C / groups, kh, kw]";

OpSchema& AddConvAttrs(OpSchema& schema) {
  return schema.Attr("strides", std::vector<int64_t>{1, 1}, "height, width")
      .Attr("paddings", std::vector<int64_t>{0, 0},
            "height, width; or top, bottom, left, right")
      .Attr("dilations", std::vector<int64_t>{1, 1}, "height, width")
      .Attr("groups", int64_t{1},
            "input and output channels are split into this many groups, each "
            "convolved on its own");
}

// The window along height (0) or width (1).
Window WindowAlong(const WindowAttrs& attrs, int i, int64_t kernel) {
  Window window;
  window.kernel = kernel;
  window.stride = attrs.strides[i];
  window.before = attrs.paddings[2 * i];
  window.after = attrs.paddings[2 * i + 1];
  window.dilation = attrs.dilations[i];
  return window;
}

absl::StatusOr<int64_t> Groups(const InferContext& c) {
  const int64_t groups = c.Int("groups");
  if (groups >= 1) return groups;
  return AttrMismatch(c, "groups", "1 or more");
}

// Errors of a window that does not fit `in` along height or width.
absl::Status NoOutput(const InferContext& c, absl::string_view slot,
                      bool symbolic) {
  if (symbolic) {
    return SlotMismatch(c, slot, "constant H and W",
                        "symbolic ones need strides of 1 and paddings that "
                        "keep the size");
  }
  return SlotMismatch(c, slot,
                      "H and W that with their paddings hold the filter",
                      "enlarge paddings or the image");
}

absl::Status ExpectConstantFilter(const InferContext& c, const Dim& size) {
  if (size.is_constant() && size.coefficient() >= 1) return absl::OkStatus();
  return SlotMismatch(c, "Filter", "constant kh and kw from 1 up",
                      "a filter's size cannot vary");
}

absl::Status InferConv(InferContext& c, bool depthwise) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "Input", 4, kImage));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Filter", 4, kFilter));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c));
  HT_ASSIGN_OR_RETURN(const int64_t groups, Groups(c));
  const Dims& in = c.Input("Input").dims;
  const Dims& filter = c.Input("Filter").dims;
  if (depthwise && in[1] != Dim(groups)) {
    return AttrMismatch(
        c, "groups",
        absl::StrCat("the channels of Input, ", c.Print(c.Input("Input"))),
        "or use conv2d");
  }
  if (filter[1] * Dim(groups) != in[1]) {
    return SlotMismatch(c, "Filter",
                        absl::StrCat(kFilter, " with C / groups = ",
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
  for (int i = 0; i < 2; ++i) {
    HT_RETURN_IF_ERROR(ExpectConstantFilter(c, filter[2 + i]));
    const auto size = WindowOutput(
        in[2 + i], WindowAlong(attrs, i, filter[2 + i].coefficient()));
    if (!size.has_value()) {
      return NoOutput(c, "Input", !in[2 + i].is_constant());
    }
    out.push_back(*size);
  }
  c.SetOutput("Output", std::move(out));
  return absl::OkStatus();
}

// Height and width of what the gradient is of; -1: that of OutputGrad.
absl::Status InferConvGradInput(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "OutputGrad", 4, "[N, O, OH, OW]"));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Filter", 4, kFilter));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c));
  HT_ASSIGN_OR_RETURN(const int64_t groups, Groups(c));
  HT_ASSIGN_OR_RETURN(const auto input_hw, ReadPair(c, "input_hw", -1));
  const Dims& out = c.Input("OutputGrad").dims;
  const Dims& filter = c.Input("Filter").dims;
  if (filter[0] != out[1]) {
    return SlotMismatch(
        c, "Filter",
        absl::StrCat("O = ", PrintDims(c, {out[1]}), " of OutputGrad"));
  }
  Dims in = {out[0], filter[1] * Dim(groups)};
  for (int i = 0; i < 2; ++i) {
    HT_RETURN_IF_ERROR(ExpectConstantFilter(c, filter[2 + i]));
    const Dim size = input_hw[i] == -1 ? out[2 + i] : Dim(input_hw[i]);
    const Window window = WindowAlong(attrs, i, filter[2 + i].coefficient());
    if (WindowOutput(size, window) != out[2 + i]) {
      return SlotMismatch(
          c, "OutputGrad",
          "the dims of the convolution of input_hw with these attributes");
    }
    in.push_back(size);
  }
  c.SetOutput("InputGrad", std::move(in));
  return absl::OkStatus();
}

absl::Status InferConvGradFilter(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "Input", 4, kImage));
  HT_RETURN_IF_ERROR(ExpectRank(c, "OutputGrad", 4, "[N, O, OH, OW]"));
  HT_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(c));
  HT_ASSIGN_OR_RETURN(const int64_t groups, Groups(c));
  HT_ASSIGN_OR_RETURN(const auto filter_hw, ReadPair(c, "filter_hw", 1));
  const Dims& in = c.Input("Input").dims;
  const Dims& out = c.Input("OutputGrad").dims;
  Dim per_group;
  if (!in[1].DivideBy(Dim(groups), &per_group)) {
    return SlotMismatch(
        c, "Input", absl::StrCat("C to be a multiple of groups = ", groups));
  }
  for (int i = 0; i < 2; ++i) {
    const auto size =
        WindowOutput(in[2 + i], WindowAlong(attrs, i, filter_hw[i]));
    if (in[0] != out[0] || size != out[2 + i]) {
      return SlotMismatch(
          c, "OutputGrad",
          "the dims of the convolution of Input with these attributes");
    }
  }
  c.SetOutput("FilterGrad",
              {out[1], per_group, Dim(filter_hw[0]), Dim(filter_hw[1])});
  return absl::OkStatus();
}

absl::Status GradConv(GradContext& g) {
  HT_ASSIGN_OR_RETURN(const ValueId out_grad,
                      CastTo(g, g.OutGrad("Output"), InputDType(g, "Input")));
  const auto size = [](const Dim& dim) {
    return dim.is_constant() ? dim.coefficient() : int64_t{-1};
  };
  const Dims in = g.type(g.Input("Input")).dims;
  const Dims filter = g.type(g.Input("Filter")).dims;
  // First, as a layer's last parameter: buckets fill as DDP's do.
  if (g.Has("Bias") && g.Wants("Bias")) {
    HT_RETURN_IF_ERROR(
        g.SetGrad("Bias", g.Emit("reduce_sum")
                              .In("X", out_grad)
                              .Attr("dim", std::vector<int64_t>{0, 2, 3})));
  }
  if (g.Wants("Input")) {
    HT_RETURN_IF_ERROR(g.SetGrad(
        "Input",
        g.Emit("conv2d_grad_input")
            .AttrsOf(g.op())
            .In("OutputGrad", out_grad)
            .In("Filter", g.Input("Filter"))
            .Attr("input_hw", std::vector<int64_t>{size(in[2]), size(in[3])})));
  }
  if (g.Wants("Filter")) {
    HT_RETURN_IF_ERROR(g.SetGrad(
        "Filter",
        g.Emit("conv2d_grad_filter")
            .AttrsOf(g.op())
            .In("Input", g.Input("Input"))
            .In("OutputGrad", out_grad)
            .Attr("filter_hw",
                  std::vector<int64_t>{size(filter[2]), size(filter[3])})));
  }
  return absl::OkStatus();
}

// Of each output element, or each gradient of one, a product with the filter's
// part for its channel: two operations per element of that.
Dim Flops(const Block& block, ValueId output, ValueId filter) {
  Dim flops = Dim(2) * block.type(output).Elements();
  const Dims& dims = block.type(filter).dims;
  for (size_t i = 1; i < dims.size(); ++i) flops = flops * dims[i];
  return flops;
}
Dim ConvFlops(const Block& block, const Op& op) {
  return Flops(block, op.out(0), op.in(1));
}
Dim GradInputFlops(const Block& block, const Op& op) {
  return Flops(block, op.in(0), op.in(1));
}
Dim GradFilterFlops(const Block& block, const Op& op) {
  return Flops(block, op.in(1), op.out(0));
}

OpSchema ConvSchema(absl::string_view name, absl::string_view doc,
                    bool depthwise) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("Input", "T", kImage)
      .In("Filter", "T", kFilter)
      .In("Bias", "T", "[O]", kOptional)
      .Out("Output", "T", "[N, O, OH, OW]")
      .Infer([depthwise](InferContext& c) { return InferConv(c, depthwise); })
      .Costs(Work::kProduct, ConvFlops)
      .Grad(GradConv)
      .Amp(AmpClass::kWhite)
      .Accumulate(DType::kF32)
      .Layout(LayoutRule::kChannelsLastOk);
  AddConvAttrs(schema);
  return schema;
}

OpSchema GradInputSchema() {
  OpSchema schema("conv2d_grad_input");
  AddConvAttrs(schema)
      .Doc("The gradient of conv2d's Input.")
      .TypeVar("T", kFloatTypes)
      .In("OutputGrad", "T", "[N, O, OH, OW]")
      .In("Filter", "T", kFilter)
      .Out("InputGrad", "T", kImage)
      .RequiredAttr("input_hw", AttrKind::kInts,
                    "height and width of Input; -1: symbolic, and the same as "
                    "OutputGrad's")
      .Infer(InferConvGradInput)
      .Costs(Work::kDataGrad, GradInputFlops)
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kWhite)
      .Accumulate(DType::kF32)
      .Layout(LayoutRule::kChannelsLastOk);
  return schema;
}

OpSchema GradFilterSchema() {
  OpSchema schema("conv2d_grad_filter");
  AddConvAttrs(schema)
      .Doc(
          "The gradient of conv2d's Filter. FilterGrad has a type of its "
          "own, so that an up-cast folds into it.")
      .TypeVar("T", kFloatTypes)
      .TypeVar("TW", kFloatTypes, "T")
      .In("Input", "T", kImage)
      .In("OutputGrad", "T", "[N, O, OH, OW]")
      .Out("FilterGrad", "TW", kFilter)
      .RequiredAttr("filter_hw", AttrKind::kInts, "kh, kw")
      .Infer(InferConvGradFilter)
      .Costs(Work::kWeightGrad, GradFilterFlops)
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kWhite)
      .Accumulate(DType::kF32)
      .Layout(LayoutRule::kChannelsLastOk);
  return schema;
}

}  // namespace

void RegisterConv(OpRegistry& registry) {
  registry.Add(ConvSchema(
      "conv2d",
      "Output = Input convolved (cross-correlated) with Filter, + Bias per "
      "output channel.",
      /*depthwise=*/false));
  registry.Add(ConvSchema(
      "depthwise_conv2d",
      "conv2d in which every input channel is a group of its own: groups = C.",
      /*depthwise=*/true));
  registry.Add(GradInputSchema());
  registry.Add(GradFilterSchema());
}

}  // namespace ops
}  // namespace halftone
