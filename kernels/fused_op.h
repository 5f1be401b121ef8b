// A fusion seen through its pattern: the ops of its body by role.
#ifndef HALFTONE_KERNELS_FUSED_OP_H_
#define HALFTONE_KERNELS_FUSED_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/bound_op.h"

namespace halftone {

class FusionGroup;
class FusionPattern;

namespace kernels {

class FusedOp {
 public:
  // The verifier saw to it that the body is its pattern's: CHECKed. `fusion` is
  // borrowed.
  explicit FusedOp(const BoundOp& fusion);

  const std::string& pattern() const;  // its name
  // The dtype and layout in the kernel's key.
  const TensorType& key() const;
  // Of roles that the pattern has. An op is bound as the fusion is.
  bool Has(absl::string_view role) const;
  BoundOp Of(absl::string_view role) const;

 private:
  const Block& body() const;

  const BoundOp& fusion_;
  const FusionPattern& pattern_;
  std::shared_ptr<const FusionGroup> group_;  // never changes
};

// The flat position, in the fusion's buffers, of the `index`-th value in `slot`
// of an op of its body; -1 if it has none or it is made inside.
int ArgumentPosition(const BoundOp& body_op, absl::string_view slot,
                     int index = 0);
// The flat position, among the fusion's outputs, of an output of an op of its
// body; -1: nobody reads it.
int ResultPosition(const BoundOp& body_op, absl::string_view slot);
// Whether what `body_op` reads in `slot` is the first value that `maker` makes.
bool Reads(const BoundOp& body_op, absl::string_view slot,
           const BoundOp& maker);

// The ops of a fusion's body in order, each with one result: what they read are
// the fusion's inputs, from 0 up, and behind them the results before.
struct BodyOp {
  BoundOp op;
  std::vector<int> reads;  // by flat position
};
std::vector<BodyOp> BodyOps(const BoundOp& fusion);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUSED_OP_H_
