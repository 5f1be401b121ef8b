// What the steps of a plan are for and what they must do at least: what a
// profile attributes their time to, and holds it against.
#ifndef HALFTONE_RUNTIME_PROFILE_STEP_COSTS_H_
#define HALFTONE_RUNTIME_PROFILE_STEP_COSTS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/targets/target.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

// Convolutions and matrix products by what they make; a fused op is what its
// body's heaviest op is.
enum class CostClass : uint8_t {
  kForward,      // "conv forward"
  kDataGrad,     // "dgrad"
  kWeightGrad,   // "wgrad"
  kNorm,         // "norm": all parts of batch norms
  kElementwise,  // "element-wise", and whatever else works on activations
  kCast,         // "cast": those that run on their own
  kCollective,   // "exposed collective": beside which nothing is computed
  kUpdate,       // "update": loss scale, checks, optimizer, statistics, clocks
  kInputWait,    // "input wait": for the reader, and for the feeds' copies
  kIdle,         // "idle"
};
inline constexpr int kCostClasses = 10;
absl::string_view Name(CostClass cost_class);

struct StepCost {
  CostClass cost_class = CostClass::kElementwise;
  double bytes = 0;  // inputs and outputs, each once
  double flops = 0;  // of convolutions and products, bodies of fusions included
  bool low = false;  // these are of a low precision
  double sent = 0;   // bytes from each rank to another one, of collectives
  int launches = 1;  // 0: nothing is done, in a sum over one rank
};

bool IsCollective(const Step& step);

// By the plan's steps.
std::vector<StepCost> CostsOf(const Plan& plan);

// Seconds for so much at so much per second; a rate of 0 is not known and
// bounds nothing.
double Over(double amount, double rate);

// Of products of values in 16 bits, or not: what is stored in 16 bits may be
// multiplied in f32, where that is faster.
double MostFlops(const DeviceRates& device, bool low);

// Seconds below which no kernel of such a device does it.
double LeastSeconds(const StepCost& cost, const DeviceRates& device);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_STEP_COSTS_H_
