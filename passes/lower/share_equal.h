// clean-up.share-equal: ops that compute the same from the same are one.
//
//   before
//     a: cast(X=x) -> (Out=a : f16[B,8]) {to=f16}
//     b: cast(X=x) -> (Out=b : f16[B,8]) {to=f16}
//     y: elementwise_add(X=a, Y=b) -> (Out=y : f16[B,8])
//   after
//     a: cast(X=x) -> (Out=a : f16[B,8]) {to=f16}   origins=[b]
//     y: elementwise_add(X=a, Y=a) -> (Out=y : f16[B,8])
//
// Each op that equals an earlier one (op, inputs, attributes, output types) is
// replaced by it: not ops that are NoMerge, nor fusions. A value that thereby
// is a member of reductions more than once is reduced once
// (share_members.h): parameters whose gradients are equal share a reduced one,
// and each has its own update. Nothing is left for a second run.
#ifndef HALFTONE_PASSES_LOWER_SHARE_EQUAL_H_
#define HALFTONE_PASSES_LOWER_SHARE_EQUAL_H_

#include "graph/ir/program.h"
#include "passes/pass.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

class ShareEqual : public Pass {
 public:
  absl::string_view name() const override { return "clean-up.share-equal"; }
  absl::StatusOr<bool> Run(Program& program) override {
    return RunAgain(program, 0);
  }
  absl::StatusOr<bool> RunAgain(Program& program, uint64_t since) override;
};

// Shares the ops of one block, members of reductions left alone. After an
// earlier run that ended at `since`, a Program::edit(), it need only look at
// ops that were edited after it, and their like.
bool ShareEqualOps(Block& block, HeldValues& held, uint64_t since = 0);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_SHARE_EQUAL_H_
