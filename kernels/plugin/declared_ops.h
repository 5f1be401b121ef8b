// A library's declaration of an op as an OpSchema.
#ifndef HALFTONE_KERNELS_PLUGIN_DECLARED_OPS_H_
#define HALFTONE_KERNELS_PLUGIN_DECLARED_OPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/schema/op_schema.h"
#include "kernels/plugin/halftone_op_abi.h"

namespace halftone {
namespace kernels {

// Of all ops of a library whose sizes and version are known to fit. The
// library outlives the schemas. Errors (kModel) name op and slot: names that
// are no identifiers, null pointers, numbers that mean nothing, kernels for
// dtypes that no type variable allows, gradients by ops or slots that are not
// there.
absl::StatusOr<std::vector<OpSchema>> SchemasOf(
    const HalftoneOpLibrary& library);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_PLUGIN_DECLARED_OPS_H_
