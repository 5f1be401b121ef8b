// run --profile: where the time of a step goes.
#ifndef HALFTONE_RUNTIME_PROFILE_PROFILE_H_
#define HALFTONE_RUNTIME_PROFILE_PROFILE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/executor.h"
#include "runtime/log/trace_file.h"
#include "runtime/profile/roofline.h"
#include "runtime/profile/step_costs.h"
#include "runtime/report/run_events.h"

namespace halftone {
namespace runtime {

// When a step was enqueued and what the host saw of it, in milliseconds since
// the run began (`begin`) or each for itself.
struct HostTimes {
  double begin = 0;
  double total = 0;   // to the next step's enqueueing
  double waited = 0;  // for the reader, of that
};

// Of one plan: sums over steps of what each class and each of its steps took.
class Profile {
 public:
  // The plan outlives it. `target`: what the plan is for; null: of a device
  // that nothing is known of. `tuning`: what was measured there.
  Profile(const Plan& plan, std::string device, const Target* target,
          const TuningTable& tuning);

  // A step of the plan. The first ones do not count: libraries are loaded.
  void Add(absl::Span<const Executor::Span> spans, const HostTimes& host);
  static constexpr int kWarmUp = 2;

  int64_t steps() const { return steps_; }
  // Milliseconds per step, of a class or of the whole: what the host saw.
  double ms(CostClass cost_class) const;
  double step_ms() const;

  // A row for each class, and for each of the steps that take longest.
  ProfileTable Table() const;
  static constexpr size_t kDearest = 10;

  // The latest steps as a trace, a line for each stream: as many as stay below
  // so many events, but at least a few, and enough to tell how they differ.
  std::vector<TraceEvent> Trace() const;
  static constexpr size_t kTracedEvents = 100'000;
  static constexpr size_t kLeastTraced = 5, kMostTraced = 100;

 private:
  struct Sum {
    double ms = 0;
    int64_t kernels = 0;                           // of one step
    double bytes = 0, flops = 0, roofline_ms = 0;  // likewise
  };
  struct TracedStep {
    HostTimes host;
    std::vector<Executor::Span> spans;
  };
  const Sum& of(CostClass c) const { return sums_[static_cast<int>(c)]; }
  Sum& of(CostClass c) { return sums_[static_cast<int>(c)]; }
  std::vector<ProfileTable::Op> Dearest() const;

  const Plan& plan_;
  std::string device_;
  const Target* target_;
  std::optional<Roofline> roofline_;  // none: its rates are not known
  std::vector<StepCost> costs_;
  std::vector<double> step_sums_;  // milliseconds, by the plan's steps
  std::array<Sum, kCostClasses> sums_;
  int64_t seen_ = 0, steps_ = 0;
  double total_ms_ = 0;
  std::vector<TracedStep> traced_;  // a ring
};

// Milliseconds of `span` in which none of `others` ran; these are in order and
// do not overlap.
double Exposed(const Executor::Span& span,
               absl::Span<const Executor::Span> others);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_PROFILE_H_
