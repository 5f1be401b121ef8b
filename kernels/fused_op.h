// A fusion seen through its pattern: the ops of its body by role.
#ifndef HALFTONE_KERNELS_FUSED_OP_H_
#define HALFTONE_KERNELS_FUSED_OP_H_

#include <string>

#include "absl/strings/string_view.h"
#include "graph/fusions/fusion_pattern.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

class FusedOp {
 public:
  // The verifier saw to it that the body is its pattern's: CHECKed. `fusion` is
  // borrowed.
  explicit FusedOp(const BoundOp& fusion);

  const FusionPattern& pattern() const { return pattern_; }
  // The dtype and layout in the kernel's key.
  const TensorType& key() const { return pattern_.KeyType(body(), group_); }
  // Of roles that the pattern has. An op is bound as the fusion is.
  bool Has(absl::string_view role) const { return group_.Has(role); }
  BoundOp Of(absl::string_view role) const;

 private:
  const Block& body() const { return *fusion_.op().body; }

  const BoundOp& fusion_;
  const FusionPattern& pattern_;
  FusionGroup group_;
};

// The flat position, in the fusion's buffers, of the one value in `slot` of an
// op of its body; -1 if it has none or it is made inside.
int ArgumentPosition(const BoundOp& body_op, absl::string_view slot);
// Likewise for a value of a body.
int ArgumentPosition(const Block& body, ValueId value);
// The flat position, among the fusion's outputs, of an output of an op of its
// body; -1: nobody reads it.
int ResultPosition(const BoundOp& body_op, absl::string_view slot);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUSED_OP_H_
