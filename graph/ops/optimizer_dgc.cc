// Gradients of which ranks exchange the largest elements alone, after Lin et
// al., "Deep Gradient Compression" (ICLR 2018, arXiv 1712.01887), in the units
// of Paddle's ops dgc and dgc_momentum. Made by the pass compress-gradients.
#include "graph/ops/optimizer_dgc.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/infer_helpers.h"

namespace halftone {
namespace ops {
namespace {

// As many members as `like` has, each of its dims.
absl::Status ExpectLike(const InferContext& c, absl::string_view slot,
                        absl::string_view like) {
  const auto of = c.InputList(like), members = c.InputList(slot);
  if (members.size() != of.size()) {
    return c.Error("slot ", slot, ": expected ", of.size(),
                   " values, one per member of ", like, ", found ",
                   members.size());
  }
  for (size_t i = 0; i < of.size(); ++i) {
    if (members[i].dims == of[i].dims) continue;
    return MemberMismatch(
        c, slot, i,
        absl::StrCat("the dims of ", like, "[", i, "], ", c.Print(of[i])),
        absl::StrCat("list them in the order of ", like));
  }
  return absl::OkStatus();
}

// Indices are i32.
absl::Status ExpectKept(const InferContext& c, const TensorType& of,
                        const Dims& kept, absl::string_view what) {
  const Dim elements = of.Elements();
  if (elements.is_constant() && elements.coefficient() <= 0x7fffffff &&
      kept.size() == 1 && kept[0].is_constant() && kept[0].coefficient() >= 1 &&
      kept[0].coefficient() <= elements.coefficient()) {
    return absl::OkStatus();
  }
  return c.Error(what, ": expected from 1 to all of the elements of ",
                 c.Print(of), ", found ", PrintDims(c, kept));
}

absl::Status InferDgc(InferContext& c) {
  const auto weights = c.InputList("Weights");
  const std::vector<int64_t>& keep = c.Ints("keep");
  if (weights.empty()) return SlotMismatch(c, "Weights", "one value or more");
  if (keep.size() != weights.size()) {
    return AttrMismatch(c, "keep", "a number for each member of Weights");
  }
  for (const char* slot : {"Grad", "Velocity", "Residual"}) {
    HT_RETURN_IF_ERROR(ExpectLike(c, slot, "Weights"));
  }
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"FoundInf"}));
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"InvScale"}));
  HT_RETURN_IF_ERROR(ExpectWord(c, "gradient_scale", {"none", "pre"}));
  for (const char* attr : {"mu", "weight_decay", "clip_norm", "predivide"}) {
    HT_RETURN_IF_ERROR(ExpectRange(c, attr, 0, kMaxDouble));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const Dims kept = {Dim(keep[i])};
    HT_RETURN_IF_ERROR(ExpectKept(c, weights[i], kept, "attribute keep"));
    for (const char* slot : {"Values", "Indices"}) c.SetOutput(slot, kept, i);
    for (const char* slot : {"VelocityOut", "ResidualOut"}) {
      c.SetOutput(slot, weights[i].dims, i);
      c.SetOutputLayout(slot, weights[i].layout, i);
    }
  }
  return absl::OkStatus();
}

absl::Status InferDgcSum(InferContext& c) {
  const auto like = c.InputList("Like"), values = c.InputList("Values");
  if (like.empty() || like.size() != values.size()) {
    return SlotMismatch(c, "Values", "one value or more, one for each of Like");
  }
  HT_RETURN_IF_ERROR(ExpectLike(c, "Indices", "Values"));
  for (size_t i = 0; i < like.size(); ++i) {
    HT_RETURN_IF_ERROR(ExpectKept(c, like[i], values[i].dims, "slot Values"));
    c.SetOutput("Out", like[i].dims, i);
    c.SetOutputLayout("Out", like[i].layout, i);
  }
  return absl::OkStatus();
}

OpSchema DgcSchema() {
  OpSchema schema("dgc");
  schema
      .Doc(
          "With g = Grad * InvScale * p * world, p as all_reduce has it, "
          "scaled down to |g| = clip_norm * sqrt(world) if it is above that "
          "and clip_norm is not 0, then g += weight_decay * Weights: u = mu * "
          "u + g and v += u, or with use_nesterov u = mu * (u + g) and v += u "
          "+ g. Values and Indices are the `keep` elements of v of the largest "
          "magnitude, the first ones of equals, in ascending order of place in "
          "memory; u and v become 0 there. If FoundInf, u and v stay what they "
          "were, and zeros are sent.")
      .TypeVar("G", kFloatTypes)
      .In("Weights", "f32", "parameters", kList)
      .In("Grad", "G", "this rank's gradients, as backward made them", kList)
      .In("Velocity", "f32", "u, dims of Weights", kList)
      .In("Residual", "f32", "v, dims of Weights", kList)
      .In("FoundInf", "bool", "[]: the step is rejected")
      .In("InvScale", "f32", "[]: of reduced gradients")
      .Out("Values", "f32", "[keep]", kList)
      .Out("Indices", "i32", "[keep]: places in memory", kList)
      .Out("VelocityOut", "f32", "new u", kList)
      .Out("ResidualOut", "f32", "new v", kList)
      .MayAlias("VelocityOut", "Velocity")
      .MayAlias("ResidualOut", "Residual")
      .Attr("keep", std::vector<int64_t>(), "elements sent of each member")
      .Attr("mu", 0.9, "decay of u")
      .Attr("use_nesterov", false, "look ahead along u")
      .Attr("weight_decay", 0.0, "0: none")
      .Attr("clip_norm", 0.0,
            "of what each rank adds to the mean of all: clipped to clip_norm "
            "/ sqrt(world); 0: it is not")
      .Attr("gradient_scale", std::string("none"),
            "pre: InvScale is for gradients that were multiplied by p")
      .Attr("predivide", 0.0, "above 0, with pre: p = 1 / predivide")
      .Infer(InferDgc)
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kBlack)
      .Layout(LayoutRule::kAny)
      .Guarded();
  return schema;
}

}  // namespace

void RegisterDgc(OpRegistry& registry) {
  registry.Add(DgcSchema());
  registry.Add(
      OpSchema("dgc_sum")
          .Doc("Out = the sum over all ranks, in their order, of what dgc "
               "sends, divided by their number; 0 elsewhere.")
          .In("Like", "f32", "any dims", kList | kShapeOnly)
          .In("Values", "f32", "[keep]: this rank's", kList)
          .In("Indices", "i32", "[keep]", kList)
          .Out("Out", "f32", "dims of Like", kList)
          .Infer(InferDgcSum)
          .NoGrad()
          .Internal()
          .Amp(AmpClass::kBlack)
          .Accumulate(DType::kF32)
          .Layout(LayoutRule::kAny));
}

}  // namespace ops
}  // namespace halftone
