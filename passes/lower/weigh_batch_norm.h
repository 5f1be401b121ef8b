// Which batch norms are worth splitting: those whose parts vanish in fusions,
// and those of all ranks, which have no kernel.
#ifndef HALFTONE_PASSES_LOWER_WEIGH_BATCH_NORM_H_
#define HALFTONE_PASSES_LOWER_WEIGH_BATCH_NORM_H_

#include <cstdint>
#include <vector>

#include "graph/ir/program.h"
#include "passes/lower/pattern_set.h"
#include "passes/options/options.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

struct WeighedNorm {
  OpId norm, grad;  // `grad` is invalid if there is none
  // Where parts of the loss are differentiated each for itself: the gradients
  // of the others. No fusion of them is weighed.
  std::vector<OpId> other_grads;
  bool sync = false;  // sync_batch_norm
  // Bytes, with every symbol of the dims 1 (one sample), that are not moved
  // once it is split and fused, less what its vectors cost. Worth it above 0.
  int64_t saved = 0;
  // The relu that alone reads the norm and whose readers can make it again for
  // themselves: all of them, or those of the step's backward part; else
  // invalid.
  OpId relu;
  bool kept_for_forward = false;
  // Of maximum pooling: what makes the gradient of the norm's result, which
  // both parts of its own gradient can make for themselves; else invalid.
  OpId pool_grad;
  // The gradient of a relu of the norm's result and another value's sum, which
  // can make that sum again for itself: at the end of a convolution's gradient,
  // before the norm's own; else invalid.
  OpId block_mask;
};

// The batch norms of the block that are worth it and all synchronised ones,
// last first.
//
// In passes over X, the norm's input, whole against split:
//   conv_stats                 1: the statistics' reading of X
//   norm_elementwise           2: the norm's result, written and read
//   norm + relu in all readers 4: X for the norm, its result twice, relu's once
//                              (the readers read X instead)
//   relu_grad_norm             1: the image's gradient, read for the sums
//   recompute_relu_grad_norm   2: that, and relu's result; nor is that kept
//                              until then
//   norm_max_pool              4: the norm's result and the relu's, written
//                              and read
//   max_pool_grad_norm and _apply
//                              2: the image's gradient, written and read twice,
//                              less what is pooled, read twice
//   conv_grad_norm             4: image's gradient twice, relu's result, X and
//                              its gradient for the sums, less X for the sign
//   conv_grad_add_norm         1: image's gradient, written and read, less the
//                              other value for the sign; no bits of it
// and what stays is the same for both. A convolution can take a norm in front
// only if the norm behind it is split, too: there is no such fusion without
// statistics.
//
// What `compress` names, X or the relu's result, keeps its relu: made again
// from an X of few bits it would let other gradients through.
std::vector<WeighedNorm> WeighBatchNorms(const Block& block,
                                         const HeldValues& held,
                                         const PatternSet& patterns,
                                         const proto::Compress& compress);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_WEIGH_BATCH_NORM_H_
