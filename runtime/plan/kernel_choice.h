// Which kernel runs an op of a plan.
#ifndef HALFTONE_RUNTIME_PLAN_KERNEL_CHOICE_H_
#define HALFTONE_RUNTIME_PLAN_KERNEL_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "graph/ir/type_memo.h"
#include "kernels/kernel_registry.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/tuning_table.h"

namespace halftone {
namespace runtime {

struct KernelChoice {
  // Null: there is none, or none that the request allows; a fusion's body runs
  // op by op then, because of `refusal` if a kernel says why.
  const kernels::Candidate* candidate = nullptr;
  std::string refusal;
  int64_t workspace_bytes = 0;
  bool view = false;  // the op only looks at its input in another way
};

// Asking a library costs more than all else that a plan does, and most ops of
// a large model are alike: each kind is asked for once.
class KernelChooser {
 public:
  // All are borrowed.
  KernelChooser(const PlanRequest& request,
                const kernels::KernelRegistry& kernels,
                const TuningTable& tuning)
      : request_(request), kernels_(kernels), tuning_(tuning) {}

  // Of an op or a fusion of `block`, a block of the request's program. The
  // tuning table's candidate if it has one, else the first that is allowed.
  // Errors (kModel): no kernel for the op's types.
  absl::StatusOr<KernelChoice> ChoiceFor(const Block& block, const Op& op);

 private:
  absl::StatusOr<KernelChoice> Choose(const kernels::BoundOp& bound) const;
  const kernels::Candidate* Pick(
      const kernels::BoundOp& bound,
      const std::vector<const kernels::Candidate*>& candidates) const;

  const PlanRequest& request_;
  const kernels::KernelRegistry& kernels_;
  const TuningTable& tuning_;
  absl::flat_hash_map<TypeMemo::Key, KernelChoice> known_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PLAN_KERNEL_CHOICE_H_
