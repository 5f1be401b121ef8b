// When a training has diverged (docs/design.md; exit 5).
#ifndef HALFTONE_RUNTIME_TRAIN_STOP_RULE_H_
#define HALFTONE_RUNTIME_TRAIN_STOP_RULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/strategy.pb.h"
#include "runtime/train/totals.h"

namespace halftone {
namespace runtime {

// A step is rejected for its gradients alone: one whose loss is not finite
// though they are is applied, as with PyTorch's GradScaler and Apex, and three
// such in a row (loss_not_finite) have diverged as well. So has a run that ends
// before without one finite loss.
//
// Watches the steps in order. Its verdicts come from replicated values alone,
// so that all ranks come to the same one at the same step.
class StopRuleWatch {
 public:
  // `floor`: of a dynamic scale; 0: the smallest normal f32, below which
  // update_loss_scaling never goes.
  StopRuleWatch(const proto::StopRule& rule, bool dynamic_scaling,
                double floor);

  // True once the rule is met; `why()` says by what.
  bool Add(const StepRecord& record);
  // True if the run, now at its end, had no step with a finite loss; not if
  // loss_not_finite is off.
  bool AtEnd();
  // Steps in a row, this one included, whose loss was not finite and that no
  // lower loss scale can help: the scale cannot fall, or the gradients were
  // finite and the step was applied.
  int64_t not_finite() const { return not_finite_; }
  // "10 skipped steps in a row with the loss scale at its floor of 1".
  const std::string& why() const { return why_; }
  // The record that met the rule.
  const StepRecord& record() const { return record_; }
  // "32768 -> 16384 (step 70) -> 8192 (step 72)": the last changes.
  std::string ScaleHistory() const;

  // For the manifest: the counters, so that a resumed run stops where the
  // uninterrupted one would.
  void Save(std::map<std::string, double>* numbers) const;
  void Restore(const std::map<std::string, double>& numbers);

 private:
  // "" while the rule is not met.
  std::string Why(const StepRecord& record) const;

  proto::StopRule rule_;
  bool dynamic_;
  double floor_;
  int64_t skipped_ = 0, at_floor_ = 0, not_finite_ = 0;
  int64_t steps_ = 0;  // all of them, until one has a finite loss; then -1
  std::string why_;
  StepRecord record_;  // until then the last one
  static constexpr int kHistory = 12;
  struct Change {
    int64_t step;
    float scale;
  };
  float first_scale_ = 0;
  std::vector<Change> changes_;  // never beyond its reserved size
  bool changes_cut_ = false;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_STOP_RULE_H_
