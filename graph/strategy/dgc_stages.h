// The stages of a run with dist.dgc: whole gradients first, then one sparsity
// after the other.
#ifndef HALFTONE_GRAPH_STRATEGY_DGC_STAGES_H_
#define HALFTONE_GRAPH_STRATEGY_DGC_STAGES_H_

#include <cstdint>
#include <vector>

#include "proto/strategy.pb.h"

namespace halftone {

struct DgcStage {
  int64_t first_step = 1;  // of those counted 1, 2, ...
  // The share of a gradient's elements that is not sent; below 0: whole
  // gradients are reduced.
  double sparsity = 0;
};

// In order, without those that have no step. As Paddle's op dgc counts: of
// steps from 0, step - rampup_begin_step times the number of sparsities over
// rampup_step, rounded down, is whose turn it is; the last one stays.
std::vector<DgcStage> DgcStages(const proto::Dgc& dgc);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_STRATEGY_DGC_STAGES_H_
