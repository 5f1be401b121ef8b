// Dropout. Draws are by logical element (see graph/base/philox.h), so that a
// mask depends neither on ranks nor on layouts; the gradient draws it again.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/well_known.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

absl::Status InferDropout(InferContext& c, absl::string_view in,
                          absl::string_view out) {
  const TensorType& x = c.Input(in);
  if (x.rank() < 1) {
    return SlotMismatch(c, in, "[N, ...]", "dim 0 is the sample axis");
  }
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Seed", "Step", "FirstSample"}));
  HT_RETURN_IF_ERROR(ExpectRange(c, "p", 0, 1));
  if (c.Float("p") == 1) {
    return AttrMismatch(c, "p", "less than 1", "all elements would be dropped");
  }
  if (!c.Bool("upscale_in_train")) {
    return AttrMismatch(c, "upscale_in_train", "true",
                        "scaling at test time is not supported: drop the "
                        "attribute and train so");
  }
  c.SetOutput(out, x.dims);
  return absl::OkStatus();
}

// What shares a draw is a whole sample or channel, in either layout.
absl::Status InferDropoutNd(InferContext& c, absl::string_view in,
                            absl::string_view out) {
  HT_RETURN_IF_ERROR(InferDropout(c, in, out));
  using Axes = std::vector<int64_t>;
  const Axes& axis = c.Ints("axis");
  if (axis == Axes{0} || (axis == Axes{0, 1} && c.Input(in).rank() >= 2)) {
    return absl::OkStatus();
  }
  return AttrMismatch(c, "axis", "[0] (samples), or [0, 1] (their channels)",
                      "elements that share a draw are a sample or a channel");
}

absl::Status GradDropout(GradContext& g) {
  return g.SetGrad("X", g.Emit(absl::StrCat(g.op().schema->name(), "_grad"))
                            .AttrsOf(g.op())
                            .In("OutGrad", g.OutGrad("Out"))
                            .In("Seed", g.Input("Seed"))
                            .In("Step", g.Input("Step"))
                            .In("FirstSample", g.Input("FirstSample")));
}

using InferDropped = absl::Status (*)(InferContext&, absl::string_view,
                                      absl::string_view);

OpSchema DropoutSchema(absl::string_view name, absl::string_view doc,
                       std::string in, std::string out, InferDropped infer) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In(in, "T", "[N, ...]: dim 0 is the sample axis")
      .ImplicitIn("Seed", "i64", kSeed)
      .ImplicitIn("Step", "i64", kAttempted)
      .ImplicitIn("FirstSample", "i64", kFirstSample)
      .Out(out, "T", "the same dims")
      .Attr("p", 0.5, "probability with which an element is dropped")
      .StreamAttr(
          "which stream of random numbers; 0 in a model: from the op's name")
      .Attr("upscale_in_train", true,
            "kept elements are divided by 1 - p; false is refused")
      .Infer([=](InferContext& c) { return infer(c, in, out); })
      .Amp(AmpClass::kGray)
      .NoMerge()
      .ElementWise();
  return schema;
}

}  // namespace

void RegisterDropout(OpRegistry& registry) {
  registry.Add(
      DropoutSchema("dropout",
                    "Out = X / (1 - p) where the element's draw from [0, 1) "
                    "is p or more, else 0; at test time Out = X.",
                    "X", "Out", InferDropout)
          .Grad(GradDropout)
          .ToTest("identity"));
  registry.Add(DropoutSchema("dropout_grad",
                             "The gradient of dropout: XGrad = OutGrad with "
                             "the mask and scale of the forward op.",
                             "OutGrad", "XGrad", InferDropout)
                   .NoGrad()
                   .Internal());
  const auto shared = [](OpSchema schema) {
    return std::move(schema)
        .Attr("axis", std::vector<int64_t>{0},
              "the dims that have draws of their own: [0], samples, or [0, 1], "
              "channels of samples")
        .Layout(LayoutRule::kAny);
  };
  registry.Add(
      shared(DropoutSchema("dropout_nd",
                           "dropout with a draw per sample (stochastic depth, "
                           "Huang et al. 2016) or per channel of a sample "
                           "(Tompson et al. 2015).",
                           "X", "Out", InferDropoutNd))
          .Grad(GradDropout)
          .ToTest("identity"));
  registry.Add(shared(DropoutSchema("dropout_nd_grad",
                                    "The gradient of dropout_nd: XGrad = "
                                    "OutGrad with the mask and scale of the "
                                    "forward op.",
                                    "OutGrad", "XGrad", InferDropoutNd))
                   .NoGrad()
                   .Internal());
}

}  // namespace ops
}  // namespace halftone
