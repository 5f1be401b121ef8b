// Finds the op in which a step's numbers stopped being finite, while the step
// is run again. Private to runtime/exec.
#ifndef HALFTONE_RUNTIME_EXEC_NON_FINITE_SEARCH_H_
#define HALFTONE_RUNTIME_EXEC_NON_FINITE_SEARCH_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/exec/body_runner.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/step_watcher.h"

namespace halftone {
namespace runtime {

// An origin is an op that reads finite numbers alone and makes others, or the
// first one that reads a feed or cell that is not finite itself. Each
// value that is not finite has its first origin's number on it, so that of
// several (a mask is -inf on purpose) the one is named whose numbers reached
// the finite check, or else the reduced totals. Where all gradients are finite
// and their norm is not, the check itself is an origin, and named last.
class NonFiniteSearch : public StepWatcher {
 public:
  // Of a step with micro-batches: before each.
  absl::Status Begin(const StepPlace& place) override;
  absl::Status Before(const Step& step, Pointers inputs) override;
  absl::Status After(const Step& step, Pointers inputs,
                     absl::Span<void* const> outputs) override;

  NonFinite first() const;

 private:
  absl::StatusOr<bool> IsFinite(DType dtype, const void* data, int64_t bytes);
  // Sets found_ to the first input that no step has made and that is not
  // finite.
  absl::Status LookAtInputs(const Step& step, Pointers inputs);
  // The lowest number on what is read; -1: it is finite.
  int LabelOf(Pointers inputs) const;
  int NewOrigin(const Step& step);
  // The first op of a fusion's body that is not finite, for the inputs that
  // Before has kept; "" if there is none.
  absl::StatusOr<std::string> SearchBody(const Block& body);
  // The lowest number on what lies where the collective works.
  int LabelInside(const Slice& slice, const void* data) const;

  StepPlace place_;
  std::vector<NonFinite> origins_;
  absl::flat_hash_map<const void*, int> labels_;  // by address
  absl::flat_hash_set<const void*> cells_;        // of them
  absl::flat_hash_set<const void*> looked_at_;    // addresses
  std::string found_;                             // by LookAtInputs
  int64_t micro_batch_ = -1;
  int checked_ = -1, reduced_ = -1;  // numbers that reached the two
  int norm_ = -1;                    // the check's own
  std::vector<void*> kept_;          // inputs of the fusion under way
  BodyRunner bodies_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_NON_FINITE_SEARCH_H_
