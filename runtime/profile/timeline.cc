#include "runtime/profile/timeline.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/profile/profile.h"
#include "runtime/profile/step_costs.h"

namespace halftone {
namespace runtime {
namespace {

bool Overlap(const Slice& a, const Slice& b) {
  return a.arena == b.arena && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

// When the last step before `collective` that writes to what it sends is over.
double ReadyMs(const Plan& plan, size_t collective,
               absl::Span<const Executor::Span> spans) {
  double ready = 0;
  for (const Slice& sent : plan.steps[collective].outputs) {
    for (size_t s = 0; s < collective; ++s) {
      for (const Slice& made : plan.steps[s].outputs) {
        if (Overlap(made, sent)) ready = std::max(ready, spans[s].end);
      }
    }
  }
  return ready;
}

// Times of all steps and the host's; the names of steps without one go to
// the timeline's unknown ones.
std::vector<double> StepMs(const Plan& plan, const TimelineRequest& request,
                           Timeline* timeline) {
  const std::vector<StepCost> costs = CostsOf(plan);
  std::vector<double> ms(plan.steps.size(), -1);
  if (request.measured.has_value()) {
    SlowestSteps slowest =
        SlowestOf(request.topology.ranks, plan, *request.measured);
    ms = std::move(slowest.ms);
    timeline->host_ms = request.slower * slowest.host_ms;
  }
  for (size_t s = 0; s < ms.size(); ++s) {
    const Step& step = plan.steps[s];
    if (IsCollective(step)) {
      ms[s] = 1000 * CollectiveSeconds(step, request.topology);
      continue;
    }
    if (ms[s] < 0 && request.roofline.has_value()) {
      ms[s] = 1000 * Predict(step, costs[s], *request.roofline).seconds;
    }
    if (ms[s] < 0) {
      timeline->unknown.push_back(step.name);
      ms[s] = 0;
    }
    ms[s] *= request.slower;
  }
  return ms;
}

Communication CommunicationOf(const Plan& plan, size_t s,
                              absl::Span<const Executor::Span> spans,
                              absl::Span<const size_t> computing) {
  const Step& step = plan.steps[s];
  Communication communication;
  communication.step = s;
  communication.gradients = step.stream == StreamKind::kCommunicate;
  for (const Slice& slice : step.outputs) communication.bytes += slice.bytes;
  communication.ready_ms = ReadyMs(plan, s, spans);
  communication.begin_ms = spans[s].begin;
  communication.end_ms = spans[s].end;
  std::vector<Executor::Span> beside;
  for (size_t c : computing) {
    if (std::min(spans[c].end, spans[s].end) <=
        std::max(spans[c].begin, spans[s].begin)) {
      continue;
    }
    beside.push_back(spans[c]);
    if (communication.first.empty()) communication.first = plan.steps[c].name;
    communication.last = plan.steps[c].name;
  }
  communication.exposed_ms = std::max(0.0, Exposed(spans[s], beside));
  return communication;
}

}  // namespace

std::vector<Executor::Span> ScheduleOf(const Plan& plan,
                                       absl::Span<const double> ms,
                                       bool overlap) {
  std::array<double, 2> now = {0, 0};  // by stream
  double wire = 0;
  std::vector<double> events;
  std::vector<Executor::Span> spans;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    double& clock = now[overlap ? static_cast<int>(step.stream) : 0];
    for (int event : step.waits) clock = std::max(clock, events[event]);
    const bool sends = IsCollective(step) && ms[s] > 0;
    if (sends) clock = std::max(clock, wire);
    spans.push_back({clock, clock + ms[s]});
    clock += ms[s];
    if (sends) wire = clock;
    if (step.records < 0) continue;
    events.resize(std::max<size_t>(events.size(), step.records + 1), 0);
    events[step.records] = clock;
  }
  return spans;
}

Timeline TimelineOf(const Plan& plan, const TimelineRequest& request) {
  Timeline timeline;
  const std::vector<double> ms = StepMs(plan, request, &timeline);
  timeline.spans = ScheduleOf(plan, ms, request.overlap);
  std::vector<size_t> computing;
  for (size_t s = 0; s < ms.size(); ++s) {
    timeline.ms = std::max(timeline.ms, timeline.spans[s].end);
    if (IsCollective(plan.steps[s])) continue;
    computing.push_back(s);
    timeline.compute_ms += ms[s];
  }
  timeline.exposed_ms = timeline.ms - timeline.compute_ms;
  for (size_t s = 0; s < ms.size(); ++s) {
    if (!IsCollective(plan.steps[s]) || ms[s] == 0) continue;
    timeline.communications.push_back(
        CommunicationOf(plan, s, timeline.spans, computing));
    timeline.communication_ms += ms[s];
  }
  timeline.ms += timeline.host_ms;
  return timeline;
}

std::vector<TraceEvent> TraceOf(const Plan& plan, const Timeline& timeline) {
  const std::vector<StepCost> costs = CostsOf(plan);
  std::vector<TraceEvent> events;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Executor::Span& span = timeline.spans[s];
    events.push_back(
        {plan.steps[s].name, std::string(Name(costs[s].cost_class)),
         plan.steps[s].stream == StreamKind::kCompute ? "compute"
                                                      : "communicate",
         span.begin, span.end - span.begin});
  }
  events.push_back({"step", "step", "steps", 0, timeline.ms});
  return events;
}

}  // namespace runtime
}  // namespace halftone
