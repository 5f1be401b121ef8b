// Which ops of a model must stay f32.
#ifndef HALFTONE_TOOLS_SEARCH_PRECISION_SEARCH_H_
#define HALFTONE_TOOLS_SEARCH_PRECISION_SEARCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "proto/strategy.pb.h"
#include "tools/search/metric.h"
#include "tools/search/searched_op.h"
#include "tools/search/trials.h"

namespace halftone {
namespace tools {

struct SearchAnswer {
  // The model's, with what was found: its values are the user's own.
  proto::Strategy strategy;
  std::vector<SearchedOp> kept;     // must stay f32
  std::vector<SearchedOp> freed;    // black by their list and need not be
  int candidates = 0;               // ops that can run low
  double reference = 0, value = 0;  // the metric in f32 and as found
};

// Trains the model in f32 (O0) and then with more and fewer of its ops in f32
// (at its own level) until no op can be left out of those that are.
// `within_lists`: black ops stay f32 without being asked. Errors: kUsage (a
// strategy of level O0, nothing can be low), kDiverged (the reference),
// kDiffer (all f32 at its level misses, too), those of Trials.
absl::StatusOr<SearchAnswer> SearchPrecision(const CompiledModel& model,
                                             const Tolerance& tolerance,
                                             bool within_lists, Trials* trials);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_PRECISION_SEARCH_H_
