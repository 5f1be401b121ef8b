// How many steps ranks go on by themselves.
#ifndef HALFTONE_KERNELS_FUNCTORS_LOCAL_STEPS_H_
#define HALFTONE_KERNELS_FUNCTORS_LOCAL_STEPS_H_

#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

struct LocalStepsState {
  int64_t averaged_at, local_steps;
  float first_loss, first_rate;  // both 0: there was none yet
};

struct LocalStepsPolicy {
  int64_t init_k_steps, begin_step;
};

// Fleet's bounds, AdaptiveLocalSGDOptimizer.
constexpr float kMostLocalSteps = 16;

// After step `step` (1, 2, ...) of the mean `loss`; adapt_local_steps says
// what becomes of what.
HT_HOST_DEVICE inline LocalStepsState AdaptLocalSteps(
    LocalStepsState state, int64_t step, float loss, float rate,
    const LocalStepsPolicy& policy) {
  if (state.first_loss == 0 && state.first_rate == 0 && IsFinite(loss)) {
    state.first_loss = loss;
    state.first_rate = rate;
  }
  if (step > policy.begin_step &&
      step - state.averaged_at < state.local_steps) {
    return state;
  }
  state.averaged_at = step;
  const float square = state.first_rate * loss / (rate * state.first_loss) *
                       static_cast<float>(policy.init_k_steps);
  if (!(square >= 0)) return state;  // NaN, too
  const float most = kMostLocalSteps * kMostLocalSteps;
  // As the square: an infinite one has no ceiling that is a number.
  const float root = Sqrt(square < most ? square : most);
  const auto whole = static_cast<int64_t>(root);
  const int64_t steps = static_cast<float>(whole) < root ? whole + 1 : whole;
  state.local_steps = steps < 1 ? 1 : steps;
  return state;
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_LOCAL_STEPS_H_
