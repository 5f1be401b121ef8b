// The attributes of learning_rate that say a strategy's schedule:
//
//   lr { step { step_size: 30 } }
//   -> {policy="step", gamma=0.1, every="epochs", length=30}
#ifndef HALFTONE_PASSES_UPDATE_RATE_POLICY_H_
#define HALFTONE_PASSES_UPDATE_RATE_POLICY_H_

#include <string>
#include <utility>
#include <vector>

#include "graph/ir/attr.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

using RateAttrs = std::vector<std::pair<std::string, AttrValue>>;

// Those that differ from the op's defaults or say which policy it is.
RateAttrs RatePolicyOf(const proto::LearningRate& lr);

// Whether the schedule counts epochs: its op reads @steps_per_epoch.
bool CountsEpochs(const RateAttrs& attrs);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_RATE_POLICY_H_
