#include "runtime/train/profile.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

double Length(const Executor::Span& span) { return span.end - span.begin; }

// "12.3", or blanks where there is nothing to say.
std::string Rate(double amount, double ms, double unit) {
  if (amount <= 0 || ms <= 0) return "-";
  return absl::StrFormat("%.1f", amount / ms * 1000 / unit);
}

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

std::vector<std::string> Profile::Lines() const {
  std::vector<std::string> lines = {absl::StrCat(
      "profile  ", Count(steps_, "step"), " of ", ThreeDigits(step_ms()),
      " ms, step by step", steps_ == 0 ? ": too few to tell" : "")};
  if (steps_ == 0) return lines;
  lines.push_back(absl::StrFormat(
      "         %-18s %9s %6s %8s %8s %9s%s", "class", "ms", "share", "kernels",
      "GB/s", "GFLOP/s", rates_ != nullptr ? "  of roofline" : ""));
  for (int c = 0; c < kCostClasses; ++c) {
    const CostClass cost_class = static_cast<CostClass>(c);
    const Sum& sum = of(cost_class);
    const double took = ms(cost_class);
    std::string line = absl::StrFormat(
        "         %-18s %9.3f %4.1f %% %8d %8s %9s", Name(cost_class), took,
        100 * took / step_ms(), sum.kernels, Rate(sum.bytes, took, 1e9),
        Rate(sum.flops, took, 1e9));
    if (sum.roofline_ms > 0 && took > 0) {
      absl::StrAppendFormat(&line, "  %10.0f %%", 100 * sum.roofline_ms / took);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

nlohmann::ordered_json Profile::Json() const {
  nlohmann::ordered_json json = {{"steps", steps_},
                                 {"step_ms", step_ms()},
                                 {"device", device_},
                                 {"classes", nlohmann::ordered_json::array()}};
  for (int c = 0; c < kCostClasses; ++c) {
    const CostClass cost_class = static_cast<CostClass>(c);
    const Sum& sum = of(cost_class);
    nlohmann::ordered_json row = {{"class", std::string(Name(cost_class))},
                                  {"ms", ms(cost_class)},
                                  {"kernels", sum.kernels},
                                  {"bytes", sum.bytes},
                                  {"flops", sum.flops}};
    if (rates_ != nullptr) row["roofline_ms"] = sum.roofline_ms;
    json["classes"].push_back(std::move(row));
  }
  return json;
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
