// When the steps of a plan run, stream by stream, by what each of them takes:
// of `plan --timeline`.
#ifndef HALFTONE_RUNTIME_PROFILE_TIMELINE_H_
#define HALFTONE_RUNTIME_PROFILE_TIMELINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/exec/executor.h"
#include "runtime/log/trace_file.h"
#include "runtime/profile/link_times.h"
#include "runtime/profile/measured_steps.h"
#include "runtime/profile/roofline.h"

namespace halftone {
namespace runtime {

// By the plan's steps, in milliseconds: each begins when the one before it on
// its stream is over and the events that it waits for have happened, and no
// two collectives are under way at once, as ranks make them in one order.
// `overlap`: the streams run beside each other; else, as on a CPU, where a call
// returns when its work is done, everything runs one by one.
std::vector<Executor::Span> ScheduleOf(const Plan& plan,
                                       absl::Span<const double> ms,
                                       bool overlap);

// Of a collective.
struct Communication {
  size_t step = 0;  // of the plan
  bool gradients = false;
  int64_t bytes = 0;
  double ready_ms = 0;  // the last of what it sends is there
  double begin_ms = 0, end_ms = 0;
  double exposed_ms = 0;    // of these, nothing is computed
  std::string first, last;  // what is computed beside it; empty: nothing
};

struct TimelineRequest {
  Topology topology;
  bool overlap = true;
  std::optional<Roofline> roofline;
  std::optional<MeasuredSteps> measured;  // goes before
  double slower = 1;  // times that computing takes longer than these say
};
struct Timeline {
  std::vector<Executor::Span> spans;  // by the plan's steps
  double ms = 0;                      // of a step: compute + exposed + host
  double compute_ms = 0, communication_ms = 0, exposed_ms = 0, host_ms = 0;
  std::vector<Communication> communications;  // in the plan's order
  std::vector<std::string> unknown;  // steps of which nobody knows a time
};
Timeline TimelineOf(const Plan& plan, const TimelineRequest& request);

// A line for each stream.
std::vector<TraceEvent> TraceOf(const Plan& plan, const Timeline& timeline);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_TIMELINE_H_
