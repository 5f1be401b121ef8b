#include "runtime/profile/profile.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/profile/hints.h"

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

Profile::Profile(const Plan& plan, std::string device, const Target* target,
                 const TuningTable& tuning)
    : plan_(plan),
      device_(std::move(device)),
      target_(target),
      costs_(CostsOf(plan)),
      step_sums_(costs_.size(), 0),
      traced_(std::clamp(kTracedEvents / std::max<size_t>(costs_.size(), 1),
                         kLeastTraced, kMostTraced)) {
  if (target != nullptr) roofline_ = RooflineOf(*target, device_, tuning);
  for (size_t i = 0; i < costs_.size(); ++i) {
    Sum& sum = of(costs_[i].cost_class);
    ++sum.kernels;
    sum.bytes += costs_[i].bytes;
    sum.flops += costs_[i].flops;
    if (roofline_.has_value()) {
      sum.roofline_ms += 1000 * LeastSeconds(costs_[i], roofline_->device);
    }
  }
}

void Profile::Add(absl::Span<const Executor::Span> spans,
                  const HostTimes& host) {
  if (++seen_ <= kWarmUp || spans.size() != costs_.size()) return;
  TracedStep& traced = traced_[steps_ % traced_.size()];
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
    step_sums_[i] += Length(spans[i]);
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

std::vector<ProfileTable::Op> Profile::Dearest() const {
  std::vector<size_t> order(costs_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(kDearest, order.size());
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [this](size_t a, size_t b) {
                      return std::make_pair(-step_sums_[a], a) <
                             std::make_pair(-step_sums_[b], b);
                    });
  order.resize(count);
  std::optional<Hints> hints;
  if (target_ != nullptr) hints.emplace(plan_, *target_);
  std::vector<ProfileTable::Op> ops;
  for (size_t i : order) {
    const Step& step = plan_.steps[i];
    ProfileTable::Op op;
    op.name = step.name;
    op.kernel = KernelOf(step);
    op.shape = ShapeOf(plan_, step);
    op.ms = step_sums_[i] / static_cast<double>(steps_);
    op.bytes = costs_[i].bytes;
    op.flops = costs_[i].flops;
    std::optional<Bound> bound;
    if (roofline_.has_value()) {
      const Predicted predicted = Predict(step, costs_[i], *roofline_);
      bound = predicted.bound;
      op.bound = std::string(Name(predicted.bound));
      op.predicted_ms = 1000 * predicted.seconds;
      op.roofline_ms = 1000 * LeastSeconds(costs_[i], roofline_->device);
    }
    if (hints.has_value()) op.hint = hints->For(step, bound);
    ops.push_back(std::move(op));
  }
  return ops;
}

ProfileTable Profile::Table() const {
  ProfileTable table;
  table.device = device_;
  table.measured = roofline_.has_value() && roofline_->measured;
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
    if (roofline_.has_value()) row.roofline_ms = sum.roofline_ms;
    table.rows.push_back(std::move(row));
  }
  if (steps_ > 0) table.dearest = Dearest();
  return table;
}

std::vector<TraceEvent> Profile::Trace() const {
  std::vector<TraceEvent> events;
  const int64_t kept = std::min<int64_t>(steps_, traced_.size());
  for (int64_t s = steps_ - kept; s < steps_; ++s) {
    const TracedStep& step = traced_[s % traced_.size()];
    for (size_t i = 0; i < step.spans.size(); ++i) {
      TraceEvent event;
      event.name = plan_.steps[i].name;
      event.category = std::string(Name(costs_[i].cost_class));
      event.track = plan_.steps[i].stream == StreamKind::kCompute
                        ? "compute"
                        : "communicate";
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
