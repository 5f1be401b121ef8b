// A library's shape rule as an op's Infer.
#ifndef HALFTONE_KERNELS_PLUGIN_DECLARED_INFERENCE_H_
#define HALFTONE_KERNELS_PLUGIN_DECLARED_INFERENCE_H_

#include <functional>

#include "absl/status/status.h"
#include "graph/schema/infer_context.h"
#include "kernels/plugin/halftone_op_abi.h"

namespace halftone {
namespace kernels {

// Its errors (kModel) are the rule's own, or that it gives what no type is:
// no dims, too many, negative ones, symbols that no input has.
std::function<absl::Status(InferContext&)> InferenceOf(const HalftoneOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_PLUGIN_DECLARED_INFERENCE_H_
