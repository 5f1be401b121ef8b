// What `halftone plan --timeline` says.
#ifndef HALFTONE_TOOLS_REPORT_TIMELINE_REPORT_H_
#define HALFTONE_TOOLS_REPORT_TIMELINE_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "runtime/plan/tuning_table.h"
#include "runtime/profile/timeline.h"
#include "tools/report/plan_report.h"

namespace halftone {
namespace tools {

struct TimelineQuestion {
  PlanQuestion plan;
  int ranks_per_node = 8;
  std::string link;  // inside a machine; empty: the target's
  std::string between = "100gbe";
  double cores_per_rank = 1;  // below 1: ranks share cores
  std::string profile;        // a trace of `run --profile`; empty: the roofline
  bool best_buckets = false;
};

// A step of the rank with most samples, simulated.
struct AskedTimeline {
  AskedPlan asked;
  runtime::TimelineRequest request;
  runtime::Timeline timeline;
};
// Errors: kUsage, no such link, or nobody knows what steps take; kModel, a
// file of a link or a trace is none, or the trace is of another model.
absl::StatusOr<AskedTimeline> TimelineAsked(const CompiledModel& model,
                                            const TimelineQuestion& question,
                                            const runtime::TuningTable& tuning);

// Sizes of buckets, MiB, and what a step takes with them.
struct BucketSizes {
  double fuse = 0, first = 0;
  double ms = 0;
};
struct BestBuckets {
  BucketSizes now, best;
  int tried = 0;  // whose buckets differ
};
// Compiles the model again with sizes from one 64th of all gradients to all of
// them, by powers of two, and simulates each: the fastest, of equally fast
// ones that with the fewest buckets. Errors: kUsage, the strategy joins none.
absl::StatusOr<BestBuckets> FindBestBuckets(const CompiledModel& model,
                                            const TimelineQuestion& question,
                                            const runtime::TuningTable& tuning);

// One screen: what a step takes, each bucket with what is exposed of it, steps
// for 1 to 1,024 ranks with as many samples each, and what limits; as JSON all
// collectives.
absl::StatusOr<std::string> TimelineText(const CompiledModel& model,
                                         const TimelineQuestion& question,
                                         const runtime::TuningTable& tuning,
                                         bool json);
// Writes the trace of the simulated step for Perfetto.
absl::Status WriteTimelineTrace(const CompiledModel& model,
                                const TimelineQuestion& question,
                                const runtime::TuningTable& tuning,
                                const std::string& file);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_TIMELINE_REPORT_H_
