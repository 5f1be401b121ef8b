// What `halftone explain strategy` says: fields as proto/strategy.proto
// declares them, with the defaults that resolving gives.
#ifndef HALFTONE_TOOLS_REPORT_STRATEGY_REPORT_H_
#define HALFTONE_TOOLS_REPORT_STRATEGY_REPORT_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "graph/strategy/fields.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace tools {

// A resolved strategy: what its values are, and where each came from.
struct StrategyInForce {
  proto::Strategy strategy;
  std::map<std::string, std::string> origins;  // by path: "--level", "level O1"
};
StrategyInForce InForceOf(const CompiledModel& model);

// A table of all fields. `path`: one field, or the fields of a part; unknown:
// kUsage, nearest named. `in_force` (may be null): with the values that they
// have there.
absl::StatusOr<std::string> ExplainStrategy(const std::string& path, bool json,
                                            const StrategyInForce* in_force);

// What an otherwise empty strategy becomes, by what was chosen: "O1 bf16".
using Bundles = std::vector<std::pair<std::string, proto::Strategy>>;
// Each level with each dtype.
const Bundles& LevelBundles();
// At O1, without a scaler preset ("none") and with each.
const Bundles& ScalerBundles();
// Whether the field is another in some of them; what chooses them is not.
bool Differs(const Bundles& bundles, const std::string& path);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_STRATEGY_REPORT_H_
