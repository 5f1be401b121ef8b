// Which ops make a program miss a tolerance that another one of the same model
// holds.
#ifndef HALFTONE_TOOLS_SEARCH_BISECT_H_
#define HALFTONE_TOOLS_SEARCH_BISECT_H_

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

struct GuiltyOp {
  SearchedOp op;
  std::string bad, good;  // its precision: "f16", "f32"
};
struct GuiltyOps {
  std::vector<GuiltyOp> ops;  // in the model's order
  Verdict verdict;            // with these alone as in the bad program
};

// A program whose runs did not agree.
struct FlakyVerdict {
  std::string what;
  Verdict verdict;
};

struct BisectAnswer {
  // The bad program's, the guilty ops as in the good one: its values are the
  // user's own.
  proto::Strategy strategy;
  std::vector<GuiltyOps> guilty;  // each set for itself misses the tolerance
  int candidates = 0;             // ops whose precision differs
  double good = 0;                // the metric
  Verdict bad, cure;              // cure: of the strategy
  std::vector<FlakyVerdict> flaky;
};

// Measures the good program (unless the metric is an error of values, which is
// against it), the bad one, and programs of the bad one's strategy with some of
// its ops in the precision of the good one, by name. Errors: kUsage (no op
// differs in precision), kDiverged (the good program), kDiffer (ops of two
// models; the bad program holds the tolerance; so does none with all ops as in
// the good one), those of Trials.
absl::StatusOr<BisectAnswer> Bisect(const CompiledModel& good,
                                    const CompiledModel& bad,
                                    const Tolerance& tolerance, Trials* trials);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_BISECT_H_
