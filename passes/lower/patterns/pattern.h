// A fusion pattern: a name, by which kernels are registered, and a matcher.
// One file per pattern; adding one is that file and a line in patterns.cc.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_PATTERN_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_PATTERN_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

using OpGroup = absl::InlinedVector<OpId, 16>;

struct Pattern {
  std::string name;
  // The group of ops, two or more, whose only visible output is the first
  // output of `last`, which is among them; empty: no match. Every other op's
  // output is read within the group alone and not held.
  OpGroup (*match)(const Block& block, OpId last, const HeldValues& held);
};

// All patterns, in the order in which fuse tries them on a whole block.
absl::Span<const Pattern> AllPatterns();

// The op that makes `value` if nothing but `reader` reads it: it can be hidden
// in a fusion with `reader`. Invalid otherwise.
OpId OnlyFor(const Block& block, OpId reader, ValueId value,
             const HeldValues& held);

// The matchers.
OpGroup MatchConvBiasRelu(const Block& block, OpId last,
                          const HeldValues& held);
OpGroup MatchMatmulBiasRelu(const Block& block, OpId last,
                            const HeldValues& held);
OpGroup MatchElementwiseChain(const Block& block, OpId last,
                              const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_PATTERN_H_
