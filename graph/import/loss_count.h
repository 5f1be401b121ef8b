// What an imported loss is a mean over.
#ifndef HALFTONE_GRAPH_IMPORT_LOSS_COUNT_H_
#define HALFTONE_GRAPH_IMPORT_LOSS_COUNT_H_

#include <string>

#include "graph/io/model_reader.h"

namespace halftone {

// Goes back from the value to the means that make it: through sums, scalings
// and casts, a quotient of two sums being a mean under a mask. Where means
// over different counts are added, or a sum is divided by what is made of one,
// the counts are denominators, if the compiler takes them; if not, the first
// mean says what is counted. A value that no mean makes is one over itself:
// each rank's counts as one.
proto::Loss LossOf(const std::string& var, const proto::Model& model);

// What the model's loss compares with labels: goes back from it to an op that
// compares (of losses that are added, the first), and says which of the op's
// values is made of parameters. Empty: no such op.
std::string PredictionOf(const proto::Model& model);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_LOSS_COUNT_H_
