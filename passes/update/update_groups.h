// Which parameters share one multi-tensor update, and what it is.
#ifndef HALFTONE_PASSES_UPDATE_UPDATE_GROUPS_H_
#define HALFTONE_PASSES_UPDATE_UPDATE_GROUPS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/attr.h"
#include "graph/ir/program.h"
#include "passes/options/options.h"
#include "passes/parallel/gradients.h"

namespace halftone {
namespace passes {

// An optimizer method in the words of its op.
struct UpdateMethod {
  std::string op;  // "momentum"
  struct Slot {
    std::string slot;    // "Velocity"; the new value's slot is "VelocityOut"
    std::string suffix;  // cell "<parameter>.velocity"
    double initial = 0;
  };
  std::vector<Slot> slots;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  double weight_decay = 0;
  bool reads_applied = false;  // bias correction, decay of the rate
};

// Errors (kModel): no method is set.
absl::StatusOr<UpdateMethod> MethodOf(const proto::Optimizer& optimizer);

// The parameters of one update op, in the cells' order.
struct UpdateGroup {
  UpdateMethod method;  // with the strategy group's fields
  double lr_scale = 1;
  std::vector<ParameterGradient> members;
};

// One group per (strategy group, the parameter's dtype, the dtype in which its
// gradient was reduced, whether it is also read in low precision), in the
// order of their first parameters.
// Errors as MethodOf.
absl::StatusOr<std::vector<UpdateGroup>> GroupUpdates(
    const Program& program, const Block& train,
    const proto::Optimizer& optimizer,
    absl::Span<const ParameterGradient> gradients);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_UPDATE_GROUPS_H_
