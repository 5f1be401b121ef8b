// What the ops' Grad functions share. Backward ops run in the types of the
// forward op: a gradient has the dtype of the value that it belongs to.
#ifndef HALFTONE_GRAPH_OPS_GRAD_HELPERS_H_
#define HALFTONE_GRAPH_OPS_GRAD_HELPERS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/schema/grad_context.h"

namespace halftone {
namespace ops {

// The dtype of the value in an input slot.
DType InputDType(const GradContext& g, absl::string_view slot, int i = 0);

// Adds the op; returns its first output.
absl::StatusOr<ValueId> BuildValue(GradContext& g, OpBuilder& builder);
inline absl::StatusOr<ValueId> BuildValue(GradContext& g, OpBuilder&& builder) {
  return BuildValue(g, builder);
}

// `value`, or its cast to `dtype` where that differs.
absl::StatusOr<ValueId> CastTo(GradContext& g, ValueId value, DType dtype);

// The gradient of `output` is that of every wanted member of `input`, cast
// where the dtypes differ.
absl::Status PassThroughGrad(GradContext& g, absl::string_view output,
                             absl::string_view input);

// The gradient of a slot that was broadcast: `gradient`, summed over the dims
// along which the slot's value was repeated. `axis` is the alignment of the
// slot's dims (see AlignDims in infer_helpers.h).
absl::Status SetSummedGrad(GradContext& g, absl::string_view slot,
                           ValueId gradient, int64_t axis);

// A Grad for Out = op(X) whose gradient is one op on OutGrad and one value of
// the forward op: `type`(forward_slot = its value, OutGrad) -> XGrad, with the
// forward op's attributes.
std::function<absl::Status(GradContext&)> UnaryGrad(std::string type,
                                                    std::string forward_slot,
                                                    bool of_output);

// A Grad for Out = op(X) that moves in steps: 0 wherever there is one.
absl::Status ZeroGrad(GradContext& g);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_GRAD_HELPERS_H_
