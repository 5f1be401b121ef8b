// The batch statistics of the whole world that running statistics are fed
// from.
#ifndef HALFTONE_PASSES_UPDATE_NORM_STATISTICS_H_
#define HALFTONE_PASSES_UPDATE_NORM_STATISTICS_H_

#include <vector>

#include "graph/ir/program.h"

namespace halftone {
namespace passes {

struct NormStatistics {
  OpId norm;              // batch_norm or sync_batch_norm
  CellId mean, variance;  // the running ones
  // Of all ranks, equal on all of them.
  ValueId batch_mean, batch_variance;
};

// One per batch norm of `train` whose running statistics are cells, in program
// order. Those of a norm that is not synchronised over all ranks come from
// combine_stats behind the totals; it is left out while there is none.
std::vector<NormStatistics> FindNormStatistics(const Block& block);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_NORM_STATISTICS_H_
