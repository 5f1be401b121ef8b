#include "runtime/plan/kernel_choice.h"

#include <utility>

#include "graph/base/error.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/type_key.h"
#include "kernels/common/same_bytes.h"

namespace halftone {
namespace runtime {

using kernels::BoundOp;
using kernels::Candidate;

namespace {

constexpr int64_t kMostWorkspace = int64_t{1} << 50;

}  // namespace

absl::StatusOr<KernelChoice> KernelChooser::ChoiceFor(const Block& block,
                                                      const Op& op) {
  const TypeMemo::Key kind = KeptKindOf(block, op);
  const auto known = known_.find(kind);
  if (known != known_.end()) return known->second;
  HT_ASSIGN_OR_RETURN(
      KernelChoice choice,
      Choose(BoundOp(block, op, request_.symbols, request_.bind)));
  return known_.emplace(kind, std::move(choice)).first->second;
}

absl::StatusOr<KernelChoice> KernelChooser::Choose(const BoundOp& bound) const {
  HT_ASSIGN_OR_RETURN(const auto candidates, kernels_.Find(bound));
  KernelChoice choice;
  choice.candidate = Pick(bound, candidates);
  if (choice.candidate == nullptr) {
    if (bound.op().body != nullptr) choice.refusal = kernels_.Refusal(bound);
    return choice;
  }
  choice.view = bound.schema().view() && kernels::KeepsBytes(bound);
  if (choice.candidate->workspace_bytes) {
    choice.workspace_bytes = choice.candidate->workspace_bytes(bound);
    if (choice.workspace_bytes > kMostWorkspace) {
      return OutOfMemoryError(
          bound.name(), " (", bound.type(), "): its kernel ",
          choice.candidate->name, " wants ", choice.workspace_bytes,
          " bytes of workspace, more than any device holds; expected at most "
          "2^50: use a smaller batch or mend the kernel");
    }
  }
  return choice;
}

const Candidate* KernelChooser::Pick(
    const BoundOp& bound,
    const std::vector<const Candidate*>& candidates) const {
  const TuningEntry* tuned =
      tuning_.empty() ? nullptr : tuning_.Find(TuningTable::KeyOf(bound));
  const Candidate* first = nullptr;
  for (const Candidate* candidate : candidates) {
    if (request_.bind.deterministic && !candidate->deterministic) continue;
    if (tuned != nullptr && candidate->name == tuned->candidate) {
      return candidate;
    }
    if (first == nullptr) first = candidate;
  }
  return first;
}

}  // namespace runtime
}  // namespace halftone
