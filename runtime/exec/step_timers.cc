#include "runtime/exec/step_timers.h"

#include "absl/memory/memory.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {

absl::StatusOr<std::unique_ptr<StepTimers>> StepTimers::Create(Device* device,
                                                               size_t steps,
                                                               int ring) {
  auto timers = absl::make_unique<StepTimers>();
  timers->slots_.resize(ring);
  timers->spans_.resize(steps);
  for (Slot& slot : timers->slots_) {
    HT_ASSIGN_OR_RETURN(slot.origin, device->CreateTimer());
    for (size_t i = 0; i < steps; ++i) {
      HT_ASSIGN_OR_RETURN(auto timer, device->CreateTimer());
      slot.steps.push_back(std::move(timer));
    }
  }
  return timers;
}

absl::Status StepTimers::Begin(int slot, Stream& compute) {
  slot_ = slot;
  return slots_[slot].origin->Start(compute);
}

absl::Status StepTimers::Start(size_t step, Stream& stream) {
  return slots_[slot_].steps[step]->Start(stream);
}

absl::Status StepTimers::Stop(size_t step, Stream& stream) {
  return slots_[slot_].steps[step]->Stop(stream);
}

absl::StatusOr<absl::Span<const Executor::Span>> StepTimers::Read(int slot) {
  for (size_t i = 0; i < spans_.size(); ++i) {
    Timer& timer = *slots_[slot].steps[i];
    HT_ASSIGN_OR_RETURN(const double took, timer.Microseconds());
    HT_ASSIGN_OR_RETURN(const double begin,
                        timer.MicrosecondsSince(*slots_[slot].origin));
    spans_[i] = {begin / 1000, (begin + took) / 1000};
  }
  return absl::MakeConstSpan(spans_);
}

}  // namespace runtime
}  // namespace halftone
