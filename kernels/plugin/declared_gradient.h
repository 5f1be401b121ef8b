// A library's list of the ops that make an op's gradients as its Grad.
#ifndef HALFTONE_KERNELS_PLUGIN_DECLARED_GRADIENT_H_
#define HALFTONE_KERNELS_PLUGIN_DECLARED_GRADIENT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/schema/grad_context.h"
#include "graph/schema/op_schema.h"
#include "kernels/plugin/halftone_op_abi.h"

namespace halftone {
namespace kernels {

// `schema`: of `op`; `own`: of all ops of its library, which with Ops() are
// those that may be named. Errors (kModel): an op, a slot or a temporary that
// is not there, an input whose gradient is made twice or never.
absl::Status CheckGradient(const HalftoneOp& op, const OpSchema& schema,
                           absl::Span<const OpSchema> own);

// Emits, of a list that has been checked, those ops whose results are wanted.
// Where an output has no gradient, its slot is left out if it is optional, and
// zeros otherwise. Its errors (kModel) name a gradient of other type than its
// value.
std::function<absl::Status(GradContext&)> GradientOf(const HalftoneOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_PLUGIN_DECLARED_GRADIENT_H_
