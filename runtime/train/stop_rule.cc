#include "runtime/train/stop_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {

StopRuleWatch::StopRuleWatch(const StopRule& rule, bool dynamic_scaling,
                             double floor)
    : rule_(rule),
      dynamic_(dynamic_scaling),
      floor_(std::max<double>(floor, std::numeric_limits<float>::min())) {
  changes_.reserve(kHistory);
}

bool StopRuleWatch::Add(const StepRecord& record) {
  if (first_scale_ == 0) first_scale_ = record.scale_before;
  if (record.loss_scaling != record.scale_before) {
    if (changes_.size() == kHistory) {
      changes_.erase(changes_.begin());
      changes_cut_ = true;
    }
    changes_.push_back({record.step, record.loss_scaling});
  }
  if (!record.found_inf) {
    skipped_ = at_floor_ = not_finite_ = 0;
    return false;
  }
  const bool floor = record.scale_before <= floor_;
  ++skipped_;
  at_floor_ = dynamic_ && floor ? at_floor_ + 1 : 0;
  const bool bad_loss = !std::isfinite(record.loss());
  not_finite_ = bad_loss && (!dynamic_ || floor) ? not_finite_ + 1 : 0;
  record_ = record;
  const std::string at = absl::StrCat(
      " with the loss scale ", dynamic_ ? "at its floor of " : "constant at ",
      ExactFloat(record.scale_before));
  if (rule_.loss_not_finite > 0 && not_finite_ >= rule_.loss_not_finite) {
    why_ = absl::StrCat("the loss is not finite in ", not_finite_,
                        " steps in a row", at);
  } else if (rule_.skipped_at_floor > 0 &&
             at_floor_ >= rule_.skipped_at_floor) {
    why_ = absl::StrCat(at_floor_, " skipped steps in a row", at);
  } else if (rule_.skipped_in_a_row > 0 && skipped_ >= rule_.skipped_in_a_row) {
    why_ = absl::StrCat(skipped_, " skipped steps in a row");
  }
  return !why_.empty();
}

std::string StopRuleWatch::ScaleHistory() const {
  std::string text = changes_cut_ ? "..." : ExactFloat(first_scale_);
  for (const Change& change : changes_) {
    absl::StrAppend(&text, " -> ", ExactFloat(change.scale), " (step ",
                    change.step, ")");
  }
  return text;
}

void StopRuleWatch::Save(std::map<std::string, double>* numbers) const {
  (*numbers)["stop.skipped"] = static_cast<double>(skipped_);
  (*numbers)["stop.at_floor"] = static_cast<double>(at_floor_);
  (*numbers)["stop.not_finite"] = static_cast<double>(not_finite_);
}

void StopRuleWatch::Restore(const std::map<std::string, double>& numbers) {
  const auto get = [&numbers](const char* key) {
    const auto found = numbers.find(key);
    return found == numbers.end() ? 0 : static_cast<int64_t>(found->second);
  };
  skipped_ = get("stop.skipped");
  at_floor_ = get("stop.at_floor");
  not_finite_ = get("stop.not_finite");
}

std::vector<std::string> WhatToTry(const TrainConfig& config,
                                   const StepRecord& record,
                                   const std::string& first_non_finite) {
  std::vector<std::string> advice = {absl::StrCat(
      "a lower learning rate (--lr ", ExactDouble(config.lr_base / 10),
      ") or warm-up (--set lr.warmup_epochs=1)")};
  if (config.level != "O0") {
    if (!first_non_finite.empty()) {
      advice.push_back(
          absl::StrCat("that op in f32: --black-op ", first_non_finite));
    }
    if (config.dtype == "fp16") {
      advice.push_back("the range of f32 in 16 bits: --dtype bf16");
    }
    if (!config.dynamic_scaling && record.scale_before > 1) {
      advice.push_back("dynamic loss scaling: --loss-scale dynamic");
    }
    advice.push_back(
        "all in f32, to see whether precision is to blame: "
        "--level O0");
  }
  return advice;
}

}  // namespace runtime
}  // namespace halftone
