// recompute: backward makes values of the forward part again instead of keeping
// them (Chen et al., "Training deep nets with sublinear memory cost", 2016), in
// train and in accumulate.
//
//   before (train)
//     h: relu(X=c) -> (Out=h : f32[B,8])
//     y: matmul(X=h, Y=w) -> (Out=y : f32[B,3])
//     ...
//     w.grad: matmul(X=h, Y=y.grad) -> (Out=w.grad : f32[8,3]) {trans_x=true}   backward f32 GRADIENT_OF <- y
//   after
//     ...
//     h.again: relu(X=c) -> (Out=h.again : f32[B,8])   backward f32 RECOMPUTED <- h origins=[h]
//     w.grad: matmul(X=h.again, Y=y.grad) -> (Out=w.grad : f32[8,3]) {trans_x=true}   backward f32 GRADIENT_OF <- y
//
// A forward op that is not kept has a copy before the first reader in backward
// of what it made, once those of its inputs that are not kept either are there
// again: the original's values are free after the forward part. Copies have the
// original's kernel and inputs, so its bits: attributes, a random op's stream
// and the body of a fusion among them. That is why it runs when all else is
// lowered. Never copied: collectives, what is committed or a result, and what
// does not grow with the samples (statistics of norms, counts): norms are
// applied again, their statistics are not taken again, nor reduced.
//
// What is kept is either what memory.recompute.checkpoints names, and whatever
// comes after the last of it; or what recompute_choice.h weighs.
#ifndef HALFTONE_PASSES_LOWER_RECOMPUTE_H_
#define HALFTONE_PASSES_LOWER_RECOMPUTE_H_

#include "graph/targets/target.h"
#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class Recompute : public Pass {
 public:
  // They outlive the pass.
  Recompute(const proto::Strategy& strategy, const Target& target)
      : strategy_(strategy), target_(target) {}

  absl::string_view name() const override { return "recompute"; }
  // Errors (kModel): a checkpoint that names nothing.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  // Of train and accumulate, which both have a backward.
  bool RunOn(Entry& entry);

  const proto::Strategy& strategy_;
  const Target& target_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_RECOMPUTE_H_
