#include "runtime/train/step_totals.h"

#include <utility>

#include "kernels/functors/tree_sum.h"

namespace halftone {
namespace runtime {
namespace {

struct Group {
  const std::vector<std::vector<float>>& steps;

  std::vector<float> At(int step) const { return steps[step]; }
  std::vector<float> Add(const std::vector<float>& earlier,
                         std::vector<float> later) const {
    for (size_t i = 0; i < later.size(); ++i) later[i] = earlier[i] + later[i];
    return later;
  }
};

}  // namespace

void StepTotals::Add(std::vector<float> step) {
  group_.push_back(std::move(step));
  if (static_cast<int64_t>(group_.size()) == steps_of_group_) EndGroup();
}

// Steps that are missing count nothing: adding their zeros would change no bit.
void StepTotals::EndGroup() {
  if (group_.empty()) return;
  const auto sum = functors::SumInTree<std::vector<float>>(
      Group{group_}, static_cast<int>(group_.size()));
  totals_.resize(sum.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    totals_[i] += static_cast<double>(sum[i]);
  }
  group_.clear();
}

const std::vector<double>& StepTotals::Totals() {
  EndGroup();
  return totals_;
}

}  // namespace runtime
}  // namespace halftone
