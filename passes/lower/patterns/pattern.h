// A fusion pattern: a name, by which kernels are registered, and a matcher.
// One file per pattern; adding one is that file and a line in patterns.cc.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_PATTERN_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_PATTERN_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "passes/kernel_set.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

using OpGroup = absl::InlinedVector<OpId, 16>;

struct Pattern {
  std::string name;
  // The group of ops, two or more, of which `last` stands last; empty: no
  // match. What of their outputs is read outside the group or held, the fusion
  // makes; fuse leaves the group alone if that is read before all is there that
  // the group reads.
  OpGroup (*match)(const Block& block, OpId last, const HeldValues& held);
  // No match without an op of this type; empty: of any.
  std::string needs;
  // How its kernels round the value of a KeepF32 slot; empty: they do not.
  std::string rounds;
};

// All patterns, in the order in which fuse tries them on a whole block.
absl::Span<const Pattern> AllPatterns();

// The patterns that a compilation may use.
struct PatternSet {
  const KernelSet* kernels;  // borrowed
  // None that rounds the value of a KeepF32 slot.
  bool strict_f32_slots = false;

  bool Has(const Pattern& pattern) const {
    return kernels->HasPattern(pattern.name) &&
           !(strict_f32_slots && !pattern.rounds.empty());
  }
  // By the name of a pattern that there is.
  bool Has(absl::string_view name) const;
};

// The op that makes `value` if nothing but `reader` reads it: it can be hidden
// in a fusion with `reader`. Invalid otherwise.
OpId OnlyFor(const Block& block, OpId reader, ValueId value,
             const HeldValues& held);

// The matchers.
OpGroup MatchConvBiasRelu(const Block& block, OpId last,
                          const HeldValues& held);
OpGroup MatchMatmulBiasRelu(const Block& block, OpId last,
                            const HeldValues& held);
OpGroup MatchMatmulGelu(const Block& block, OpId last, const HeldValues& held);
OpGroup MatchMatmulGeluGrad(const Block& block, OpId last,
                            const HeldValues& held);
OpGroup MatchMatmulReluGrad(const Block& block, OpId last,
                            const HeldValues& held);
OpGroup MatchMatmulBiasGrad(const Block& block, OpId last,
                            const HeldValues& held);
OpGroup MatchElementwiseChain(const Block& block, OpId last,
                              const HeldValues& held);
OpGroup MatchConvStats(const Block& block, OpId last, const HeldValues& held);
OpGroup MatchNormConvStats(const Block& block, OpId last,
                           const HeldValues& held);
OpGroup MatchNormConvGradFilter(const Block& block, OpId last,
                                const HeldValues& held);
OpGroup MatchConvGradNorm(const Block& block, OpId last,
                          const HeldValues& held);
OpGroup MatchReluGradNorm(const Block& block, OpId last,
                          const HeldValues& held);
OpGroup MatchReluGradBias(const Block& block, OpId last,
                          const HeldValues& held);
OpGroup MatchNormElementwise(const Block& block, OpId last,
                             const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_PATTERN_H_
