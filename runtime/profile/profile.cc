#include "runtime/profile/profile.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace halftone {
namespace runtime {
namespace {

double Length(const Executor::Span& span) { return span.end - span.begin; }

}  // namespace

double Exposed(const Executor::Span& span,
               absl::Span<const Executor::Span> others) {
  double covered = 0;
  for (const Executor::Span& other : others) {
    covered += std::max(
        0.0, std::min(span.end, other.end) - std::max(span.begin, other.begin));
  }
  return Length(span) - covered;
}

Profile::Profile(const Plan& plan, std::string device)
    : device_(std::move(device)),
      rates_(FindDeviceRates(device_)),
      costs_(CostsOf(plan)) {
  for (size_t i = 0; i < costs_.size(); ++i) {
    names_.push_back(plan.steps[i].name);
    streams_.push_back(plan.steps[i].stream);
    Sum& sum = of(costs_[i].cost_class);
    ++sum.kernels;
    sum.bytes += costs_[i].bytes;
    sum.flops += costs_[i].flops;
    if (rates_ != nullptr) {
      sum.roofline_ms += 1000 * LeastSeconds(costs_[i], *rates_);
    }
  }
}

void Profile::Add(absl::Span<const Executor::Span> spans,
                  const HostTimes& host) {
  if (++seen_ <= kWarmUp || spans.size() != costs_.size()) return;
  TracedStep& traced = traced_[steps_ % kTracedSteps];
  traced.host = host;
  traced.spans.assign(spans.begin(), spans.end());
  ++steps_;
  std::vector<Executor::Span> computed;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (costs_[i].cost_class != CostClass::kCollective) {
      computed.push_back(spans[i]);
    }
  }
  double busy = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    const double ms = costs_[i].cost_class == CostClass::kCollective
                          ? Exposed(spans[i], computed)
                          : Length(spans[i]);
    of(costs_[i].cost_class).ms += ms;
    busy += ms;
  }
  // The feeds are copied before the first kernel begins.
  const double waited = host.waited + (spans.empty() ? 0 : spans[0].begin);
  of(CostClass::kInputWait).ms += waited;
  of(CostClass::kIdle).ms += host.total - waited - busy;
  total_ms_ += host.total;
}

double Profile::ms(CostClass cost_class) const {
  return steps_ == 0 ? 0 : of(cost_class).ms / static_cast<double>(steps_);
}

double Profile::step_ms() const {
  return steps_ == 0 ? 0 : total_ms_ / static_cast<double>(steps_);
}

ProfileTable Profile::Table() const {
  ProfileTable table;
  table.device = device_;
  table.steps = steps_;
  table.step_ms = step_ms();
  for (int c = 0; c < kCostClasses; ++c) {
    const CostClass cost_class = static_cast<CostClass>(c);
    const Sum& sum = of(cost_class);
    ProfileTable::Row row;
    row.name = std::string(Name(cost_class));
    row.ms = ms(cost_class);
    row.kernels = sum.kernels;
    row.bytes = sum.bytes;
    row.flops = sum.flops;
    if (rates_ != nullptr) row.roofline_ms = sum.roofline_ms;
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<TraceEvent> Profile::Trace() const {
  std::vector<TraceEvent> events;
  const int64_t kept = std::min<int64_t>(steps_, kTracedSteps);
  for (int64_t s = steps_ - kept; s < steps_; ++s) {
    const TracedStep& step = traced_[s % kTracedSteps];
    for (size_t i = 0; i < step.spans.size(); ++i) {
      TraceEvent event;
      event.name = names_[i];
      event.category = std::string(Name(costs_[i].cost_class));
      event.track =
          streams_[i] == StreamKind::kCompute ? "compute" : "communicate";
      event.begin_ms = step.host.begin + step.spans[i].begin;
      event.ms = Length(step.spans[i]);
      events.push_back(std::move(event));
    }
    events.push_back({absl::StrCat("step ", s + kWarmUp + 1), "step", "steps",
                      step.host.begin, step.host.total});
  }
  return events;
}

}  // namespace runtime
}  // namespace halftone
