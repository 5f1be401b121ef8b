// What a loss divides by besides the samples that it is a mean over: the
// counts of further means, which LossInfo names.
#ifndef HALFTONE_GRAPH_SCHEMA_DENOMINATORS_H_
#define HALFTONE_GRAPH_SCHEMA_DENOMINATORS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"

namespace halftone {

struct Denominator {
  // All in program order. The sums over samples that it is made of; the ops
  // that make these of feeds, the sums among them; those that make it of the
  // sums, none of which has samples any more.
  std::vector<OpId> sums, above, below;
  // Where it is divided by, on the way to the loss: inputs of divisions, or of
  // casts and views before one.
  std::vector<Use> readers;
};

// `value` of a block that makes the loss. Whatever ranks hold of the sums adds
// up to those of one device, and nothing of them depends on a parameter.
// Errors (kModel), without the place: the value is no float of one element, is
// made of a parameter or statistic or of anything but sums over samples; the
// loss does not divide by it, or reads it otherwise.
absl::StatusOr<Denominator> FindDenominator(const Block& block, ValueId loss,
                                            ValueId value);

// Whether the value's elements are a multiple of the samples, so that ranks
// have the same shares of both; what has no sample axis counts samples.
bool CountsSamples(const Block& block, ValueId value);

// Whether the op hands on a value in another dtype or shape.
bool HandsOn(const Op& op);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_DENOMINATORS_H_
