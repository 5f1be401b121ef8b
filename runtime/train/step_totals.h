// What steps count, added up on the host.
#ifndef HALFTONE_RUNTIME_TRAIN_STEP_TOTALS_H_
#define HALFTONE_RUNTIME_TRAIN_STEP_TOTALS_H_

#include <cstdint>
#include <vector>

namespace halftone {
namespace runtime {

// Vectors of one length, one a step. So many steps at a time, a power of two,
// are summed in f32 in a binary tree, which goes on where that of the ranks
// ends: the steps of a group are the aligned groups of its virtual shards. Sums
// of groups are f64. Of one step at a time the order is that of the steps.
class StepTotals {
 public:
  explicit StepTotals(int64_t steps_of_group = 1)
      : steps_of_group_(steps_of_group) {}
  void Add(std::vector<float> step);
  // Of all steps; the last group may be short. Empty if there was none.
  const std::vector<double>& Totals();

 private:
  void EndGroup();

  int64_t steps_of_group_;
  std::vector<std::vector<float>> group_;  // the steps of it by now
  std::vector<double> totals_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_STEP_TOTALS_H_
