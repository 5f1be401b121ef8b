// A fusion seen through the ops that it stands for.
#ifndef HALFTONE_KERNELS_COMMON_FUSION_BODY_H_
#define HALFTONE_KERNELS_COMMON_FUSION_BODY_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// The body's first op, bound as the fusion is.
BoundOp FirstOfBody(const BoundOp& fusion);

// The body's ops of one type, in order, bound as the fusion is.
std::vector<BoundOp> OpsOfBody(const BoundOp& fusion, absl::string_view type);

// The flat position, in the fusion's buffers, of an input of an op of its
// body; -1 if `value` is not one of the fusion's arguments.
int ArgumentPosition(const Block& body, ValueId value);
// Likewise for the one value in `slot` of an op of a body; -1 if it has none.
int ArgumentPosition(const BoundOp& body_op, absl::string_view slot);
// The flat position, among the fusion's outputs, of an output of an op of its
// body; -1: nobody reads it.
int ResultPosition(const BoundOp& body_op, absl::string_view slot);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_FUSION_BODY_H_
