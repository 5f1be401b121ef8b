// What `halftone explain strategy` says: fields as proto/strategy.proto
// declares them, with the defaults that resolving gives.
#ifndef HALFTONE_TOOLS_REPORT_STRATEGY_REPORT_H_
#define HALFTONE_TOOLS_REPORT_STRATEGY_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/strategy/fields.h"

namespace halftone {
namespace tools {

// A table of all fields. `path`: one field, or the fields of a part; unknown:
// kUsage, nearest named.
absl::StatusOr<std::string> ExplainStrategy(const std::string& path, bool json);

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
