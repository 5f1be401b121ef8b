// The generic fused op. Its body, a closed block of primitive ops, says what
// it computes and what its types are.
#include <string>

#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

// The types of a fusion's outputs are those of its body's results, which the
// builder is given and the verifier compares: nothing to infer here.
absl::Status InferFusion(InferContext& c) {
  if (!c.Str("pattern").empty()) return absl::OkStatus();
  return AttrMismatch(c, "pattern", "the name of a fusion pattern");
}

}  // namespace

void RegisterFusion(OpRegistry& registry) {
  registry.Add(OpSchema("fusion")
                   .Doc("What its body computes, in one kernel: feeds of the "
                        "body are X in order, its results are Out in order.")
                   .In("X", "", "of any dtypes and dims", kList | kMixed)
                   .Out("Out", "", "of any dtypes and dims", kList | kMixed)
                   .RequiredAttr("pattern", AttrKind::kString,
                                 "which fused kernel it is")
                   .Attr("rounds", std::string(),
                         "what its kernels round although the slot that reads "
                         "it is KeepF32; empty: nothing")
                   .Infer(InferFusion)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kGray)
                   .Layout(LayoutRule::kAny));
}

}  // namespace ops
}  // namespace halftone
