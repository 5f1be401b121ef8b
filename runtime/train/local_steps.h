// After which steps ranks that go on by themselves average their parameters
// (dist.localsgd, dist.adaptive_localsgd); the same on all ranks.
#ifndef HALFTONE_RUNTIME_TRAIN_LOCAL_STEPS_H_
#define HALFTONE_RUNTIME_TRAIN_LOCAL_STEPS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/strategy.pb.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

class LocalSteps {
 public:
  explicit LocalSteps(const proto::Dist& dist);

  // Where a run that is resumed stands, by its cells.
  absl::Status Restore(Executor& executor);
  // Whether a period ends with attempted step `step` (1, 2, ...), as Fleet
  // counts: up to begin_step every step does, then every k-th.
  bool EndsAt(int64_t step) const;
  // Whether the next period's steps are known from a step's results alone:
  // @local_steps.next of the one that ends this.
  bool adapts() const { return adapts_; }
  void Begin(int64_t ended_at, int64_t steps) {
    averaged_at_ = ended_at;
    steps_ = steps;
  }

 private:
  bool adapts_;
  int64_t begin_step_;
  int64_t steps_, averaged_at_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_LOCAL_STEPS_H_
