// Softmax, its logarithm and their gradients.
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

absl::Status InferSoftmax(InferContext& c) {
  const TensorType& x = c.Input("X");
  HT_RETURN_IF_ERROR(Axis(c, "axis", x.rank()).status());
  c.SetOutput("Out", x.dims);
  return absl::OkStatus();
}

absl::Status InferSoftmaxGrad(InferContext& c) {
  HT_RETURN_IF_ERROR(Axis(c, "axis", c.Input("Out").rank()).status());
  return SameDims({"Out", "OutGrad"}, "XGrad")(c);
}

// `name` and `name`_grad.
void RegisterPair(OpRegistry& registry, const std::string& name,
                  absl::string_view doc, absl::string_view formula) {
  const std::string grad = name + "_grad";
  registry.Add(OpSchema(name)
                   .Doc(doc)
                   .TypeVar("T", kFloatTypes)
                   .TypeVar("TOut", kFloatTypes, "T")
                   .In("X", "T", "rank 1 or more")
                   .Out("Out", "TOut", "dims of X")
                   .Attr("axis", int64_t{-1}, "the axis that sums to 1")
                   .Infer(InferSoftmax)
                   .Grad([grad](GradContext& g) {
                     return g.SetGrad("X", g.Emit(grad)
                                               .AttrsOf(g.op())
                                               .In("Out", g.Output("Out"))
                                               .In("OutGrad", g.OutGrad("Out"))
                                               .Bind("TX", InputDType(g, "X")));
                   })
                   .Amp(AmpClass::kBlack)
                   .Accumulate(DType::kF32));
  registry.Add(
      OpSchema(grad)
          .Doc(absl::StrCat("The gradient of ", name, ": XGrad = ", formula))
          .TypeVar("T", kFloatTypes)
          .TypeVar("TX", kFloatTypes, "T")
          .In("Out", "T", absl::StrCat("of ", name))
          .In("OutGrad", "T", "the same dims")
          .Out("XGrad", "TX", "the same dims")
          .Attr("axis", int64_t{-1}, absl::StrCat("that of ", name))
          .Lossy("Out")
          .Infer(InferSoftmaxGrad)
          .NoGrad()
          .Internal()
          .Amp(AmpClass::kBlack)
          .Accumulate(DType::kF32));
}

}  // namespace

void RegisterSoftmax(OpRegistry& registry) {
  RegisterPair(registry, "softmax",
               "Out = exp(X) / sum of exp(X) along axis, computed from X minus "
               "its maximum.",
               "Out * (OutGrad - sum of OutGrad * Out along axis).");
  RegisterPair(registry, "log_softmax",
               absl::StrCat("Out = X - ln(sum of exp(X) along axis), computed "
                            "from X minus its maximum.",
                            kClassOfPaddle),
               "OutGrad - exp(Out) * (sum of OutGrad along axis).");
}

}  // namespace ops
}  // namespace halftone
