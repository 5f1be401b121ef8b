#include "runtime/train/totals.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/well_known.h"

namespace halftone {
namespace runtime {
namespace {

// "@applied.next" without a string per step.
struct NextNames {
  std::string good = std::string(kGoodSteps) + kNextSuffix;
  std::string applied = std::string(kApplied) + kNextSuffix;
};
const NextNames& Next() {
  static const NextNames* names = new NextNames;
  return *names;
}

// What a part's results are called, made once in a thread.
struct PartNames {
  std::string not_finite, scale, bad_steps;
};
const PartNames& NamesOfPart(size_t part) {
  thread_local std::vector<PartNames> names;
  while (names.size() <= part) {
    const int next = static_cast<int>(names.size());
    const std::string suffix = ScalerSuffix(next) + kNextSuffix;
    names.push_back({absl::StrCat(kNotFinitePrefix, next),
                     kLossScaling + suffix, kBadSteps + suffix});
  }
  return names[part];
}

std::vector<PartScale> ReadParts(const StepView& view,
                                 absl::Span<const float> scales) {
  std::vector<PartScale> parts(scales.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartNames& names = NamesOfPart(i);
    parts[i].not_finite = view.Scalar(names.not_finite) != 0;
    parts[i].before = scales[i];
    parts[i].after = static_cast<float>(view.Scalar(names.scale));
    parts[i].bad_steps = static_cast<int64_t>(view.Scalar(names.bad_steps));
  }
  return parts;
}

}  // namespace

int StepRecord::PartAtFault() const {
  int found = -1;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    if (!parts[i].not_finite) continue;
    if (found < 0 || parts[i].before > parts[found].before) found = i;
  }
  return found;
}

StepRecord ReadStep(const StepView& view, int64_t step, int64_t epoch,
                    float scale_before, absl::Span<const float> part_scales) {
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
  record.loss_scaling = scale_before;
  bool first = true;
  for (const StepView::Item& item : view.items()) {
    if (!absl::EndsWith(item.name, kNextSuffix)) continue;
    const double value = StepView::Scalar(item);
    if (absl::StartsWith(item.name, kLossScaling)) {
      const float scale = static_cast<float>(value);
      record.loss_scaling =
          first ? scale : std::min(record.loss_scaling, scale);
      first = false;
    } else if (absl::StartsWith(item.name, kBadSteps)) {
      record.bad_steps =
          std::max(record.bad_steps, static_cast<int64_t>(value));
    }
  }
  record.parts = ReadParts(view, part_scales);
  record.good_steps = static_cast<int64_t>(view.Scalar(Next().good));
  record.applied = static_cast<int64_t>(view.Scalar(Next().applied));
  record.stopped = view.Scalar(kStopped);
  return record;
}

std::vector<PartLoss> PartsOf(const Program& program, const StepRecord& record,
                              const StepView& view) {
  std::vector<PartLoss> parts;
  const std::vector<LossPart>& losses = program.loss.parts;
  for (size_t i = 0; i < losses.size(); ++i) {
    PartLoss& said = parts.emplace_back();
    said.name = losses[i].name;
    said.loss =
        record.count > 0
            ? view.Scalar(absl::StrCat(kLossPartPrefix, i)) / record.count
            : std::numeric_limits<double>::quiet_NaN();
    if (!view.Has(absl::StrCat(kNotFinitePrefix, i))) continue;
    said.loss_scaling = static_cast<float>(view.Scalar(absl::StrCat(
        kLossScaling, ScalerSuffix(static_cast<int>(i)), kNextSuffix)));
  }
  return parts;
}

Asked WhatIsAsked(double stopped) {
  const double whole = std::floor(stopped);
  const int rest = static_cast<int>(std::lround((stopped - whole) * 1024));
  return {whole > 0, (rest & 1) != 0, (rest & 2) != 0};
}

}  // namespace runtime
}  // namespace halftone
