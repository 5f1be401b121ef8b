// Softmax and its gradient.
#include <utility>

#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

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

absl::Status GradSoftmax(GradContext& g) {
  return g.SetGrad("X", g.Emit("softmax_grad")
                            .AttrsOf(g.op())
                            .In("Out", g.Output("Out"))
                            .In("OutGrad", g.OutGrad("Out"))
                            .Bind("TX", InputDType(g, "X")));
}

}  // namespace

void RegisterSoftmax(OpRegistry& registry) {
  registry.Add(OpSchema("softmax")
                   .Doc("Out = exp(X) / sum of exp(X) along axis, computed "
                        "from X minus its maximum.")
                   .TypeVar("T", kFloatTypes)
                   .TypeVar("TOut", kFloatTypes, "T")
                   .In("X", "T", "rank 1 or more")
                   .Out("Out", "TOut", "dims of X")
                   .Attr("axis", int64_t{-1}, "the axis that sums to 1")
                   .Infer(InferSoftmax)
                   .Grad(GradSoftmax)
                   .Amp(AmpClass::kBlack)
                   .Accumulate(DType::kF32));
  registry.Add(OpSchema("softmax_grad")
                   .Doc("The gradient of softmax: XGrad = Out * (OutGrad - sum "
                        "of OutGrad * Out along axis).")
                   .TypeVar("T", kFloatTypes)
                   .TypeVar("TX", kFloatTypes, "T")
                   .In("Out", "T", "of softmax")
                   .In("OutGrad", "T", "the same dims")
                   .Out("XGrad", "TX", "the same dims")
                   .Attr("axis", int64_t{-1}, "that of softmax")
                   .Infer(InferSoftmaxGrad)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kBlack)
                   .Accumulate(DType::kF32));
}

}  // namespace ops
}  // namespace halftone
