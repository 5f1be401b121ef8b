// What a schedule makes of lr.base.
#ifndef HALFTONE_GRAPH_STRATEGY_FIRST_RATE_H_
#define HALFTONE_GRAPH_STRATEGY_FIRST_RATE_H_

#include <optional>

#include "proto/strategy.pb.h"

namespace halftone {

// The rate that a schedule begins with where it says all of its rates itself,
// so that nothing reads lr.base and lr.base_batch; none: they are read.
std::optional<double> OwnFirstRate(const proto::LearningRate& lr);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_STRATEGY_FIRST_RATE_H_
