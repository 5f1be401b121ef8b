#include "runtime/train/step_totals.h"

#include <utility>

namespace halftone {
namespace runtime {
namespace {

void AddTo(const std::vector<float>& earlier, std::vector<float>* sum) {
  for (size_t i = 0; i < sum->size(); ++i) {
    (*sum)[i] = earlier[i] + (*sum)[i];
  }
}

}  // namespace

void StepTotals::Add(std::vector<float> step) {
  size_t level = 0;
  for (; steps_ >> level & 1; ++level) AddTo(partials_[level], &step);
  if (level == partials_.size()) partials_.emplace_back();
  partials_[level] = std::move(step);
  if (++steps_ == steps_of_group_) EndGroup();
}

// Steps that are missing count nothing: adding their zeros would change no bit.
void StepTotals::EndGroup() {
  if (steps_ == 0) return;
  size_t level = 0;
  while ((steps_ >> level & 1) == 0) ++level;
  std::vector<float> sum = std::move(partials_[level]);
  for (++level; steps_ >> level != 0; ++level) {
    if (steps_ >> level & 1) AddTo(partials_[level], &sum);
  }
  totals_.resize(sum.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    totals_[i] += static_cast<double>(sum[i]);
  }
  steps_ = 0;
}

const std::vector<double>& StepTotals::Totals() {
  EndGroup();
  return totals_;
}

}  // namespace runtime
}  // namespace halftone
