#include "runtime/train/totals.h"

#include <cmath>

#include "graph/ir/well_known.h"

namespace halftone {
namespace runtime {
namespace {

// "@applied.next" without a string per step.
struct NextNames {
  std::string scale = std::string(kLossScaling) + kNextSuffix;
  std::string good = std::string(kGoodSteps) + kNextSuffix;
  std::string bad = std::string(kBadSteps) + kNextSuffix;
  std::string applied = std::string(kApplied) + kNextSuffix;
};
const NextNames& Next() {
  static const NextNames* names = new NextNames;
  return *names;
}

}  // namespace

StepRecord ReadStep(const StepView& view, int64_t step, int64_t epoch,
                    float scale_before) {
  StepRecord record;
  record.step = step;
  record.epoch = epoch;
  record.loss_sum = view.Scalar(kLossSum);
  record.count = view.Scalar(kCount);
  record.found_inf = view.Scalar(kFoundInf) != 0;
  record.first_bad =
      record.found_inf ? static_cast<int64_t>(view.Scalar(kFirstBad)) : -1;
  record.lr = static_cast<float>(view.Scalar(kLearningRate));
  record.scale_before = scale_before;
  record.grad_norm = static_cast<float>(view.Scalar(kGradNorm));
  record.loss_scaling = view.Has(Next().scale)
                            ? static_cast<float>(view.Scalar(Next().scale))
                            : scale_before;
  record.good_steps = static_cast<int64_t>(view.Scalar(Next().good));
  record.bad_steps = static_cast<int64_t>(view.Scalar(Next().bad));
  record.applied = static_cast<int64_t>(view.Scalar(Next().applied));
  record.stopped = view.Scalar(kStopped);
  return record;
}

Asked WhatIsAsked(double stopped) {
  const double whole = std::floor(stopped);
  const int rest = static_cast<int>(std::lround((stopped - whole) * 1024));
  return {whole > 0, (rest & 1) != 0, (rest & 2) != 0};
}

}  // namespace runtime
}  // namespace halftone
