// Values that backward reads in few bits per element, after Chen et al.,
// "ActNN: Reducing training memory footprint via 2-bit activation compressed
// training" (ICML 2021, arXiv 2104.14129). Made by the pass compress.
#include <utility>

#include "graph/base/group_shape.h"
#include "graph/ir/well_known.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

absl::Status CheckAttrs(const InferContext& c) {
  const int64_t bits = c.Int("bits"), group = c.Int("group_size");
  if (bits != 8 && bits != 4 && bits != 2) {
    return AttrMismatch(c, "bits", "8, 4 or 2");
  }
  if (group < kLeastGroup || group > kMostGroup || group % kLeastGroup != 0) {
    return AttrMismatch(c, "group_size", "a multiple of 32 from 32 to 1024");
  }
  if (c.Int("rows") < 1) return AttrMismatch(c, "rows", "1 or more");
  return absl::OkStatus();
}

// The dims of Codes and Scales of what lies in `slot`.
absl::Status PackedDims(const InferContext& c, absl::string_view slot,
                        Dims* codes, Dims* scales) {
  HT_RETURN_IF_ERROR(CheckAttrs(c));
  const TensorType& x = c.Input(slot);
  Dim samples, elements = Dim(c.Int("rows"));
  if (x.rank() < 1 || !x.dims[0].DivideBy(elements, &samples)) {
    return SlotMismatch(c, slot, "[rows * N, ...]", "dim 0 is of samples");
  }
  for (int i = 1; i < x.rank(); ++i) elements = elements * x.dims[i];
  if (!elements.is_constant()) {
    return SlotMismatch(c, slot, "constant dims but for the first",
                        "samples are of one size");
  }
  GroupShape shape;
  shape.elements = elements.coefficient();
  shape.group = c.Int("group_size");
  shape.bits = static_cast<int>(c.Int("bits"));
  *codes = {samples, Dim(shape.bytes())};
  *scales = {samples, Dim(shape.groups()), Dim(2)};
  return absl::OkStatus();
}

absl::Status InferQuantize(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Seed", "Step", "FirstSample"}));
  Dims codes, scales;
  HT_RETURN_IF_ERROR(PackedDims(c, "X", &codes, &scales));
  c.SetOutput("Codes", codes);
  c.SetOutput("Scales", scales);
  return absl::OkStatus();
}

absl::Status InferDequantize(InferContext& c) {
  Dims codes, scales;
  HT_RETURN_IF_ERROR(PackedDims(c, "Like", &codes, &scales));
  HT_RETURN_IF_ERROR(ExpectDims(c, "Codes", codes, "those of quantize_groups"));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "Scales", scales, "those of quantize_groups"));
  c.SetOutput("Out", c.Input("Like").dims);
  c.SetOutputLayout("Out", c.Input("Like").layout);
  return absl::OkStatus();
}

OpSchema WithAttrs(OpSchema schema) {
  schema.Attr("bits", int64_t{8}, "of an element: 8, 4 or 2")
      .Attr("group_size", int64_t{256},
            "elements that share a scale: a multiple of 32 up to 1024")
      .Attr("rows", int64_t{1}, "rows of dim 0 that are one sample")
      .NoGrad()
      .Internal()
      .NoMerge()
      .Amp(AmpClass::kGray)
      .Layout(LayoutRule::kAny);
  return schema;
}

}  // namespace

void RegisterGroupCodes(OpRegistry& registry) {
  registry.Add(WithAttrs(
      OpSchema("quantize_groups")
          .Doc("X in a few bits per element, in groups as a sample lies in "
               "memory. A code is the element's place between the group's "
               "least and largest, rounded up with the probability of what "
               "rounding down would lose, so that what dequantize_groups makes "
               "has the mean X. Where a group's least is 0, code 0 is 0 alone: "
               "what is above 0 stays so. A group with an element that is not "
               "finite becomes NaN.")
          .TypeVar("T", kFloatTypes)
          .In("X", "T", "[rows * N, ...]: all but the first are constant")
          .ImplicitIn("Seed", "i64", kSeed)
          .ImplicitIn("Step", "i64", kAttempted)
          .ImplicitIn("FirstSample", "i64", kFirstSample)
          .Out("Codes", "u8", "[N, bytes of a sample]")
          .Out("Scales", "f32",
               "[N, groups, 2]: what the first code stands for, and what each "
               "code more adds; minus that where code 0 is 0")
          .StreamAttr("which stream of random numbers")
          .Infer(InferQuantize)));
  registry.Add(
      WithAttrs(OpSchema("dequantize_groups")
                    .Doc("What the codes of quantize_groups stand for.")
                    .TypeVar("T", kFloatTypes, "f32")
                    .In("Like", "T", "X of quantize_groups", kShapeOnly)
                    .In("Codes", "u8", "of quantize_groups")
                    .In("Scales", "f32", "of quantize_groups")
                    .Out("Out", "T", "dims of Like")
                    .Infer(InferDequantize)));
}

}  // namespace ops
}  // namespace halftone
