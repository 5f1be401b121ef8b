#include "runtime/train/stop_rule.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

// With which the step ran: where parts of the loss have their own, what the
// others have is of no account.
float ScaleOf(const StepRecord& record) {
  const int part = record.PartAtFault();
  return part < 0 ? record.scale_before : record.parts[part].before;
}

}  // namespace

StopRuleWatch::StopRuleWatch(const proto::StopRule& rule, bool dynamic_scaling,
                             double floor)
    : rule_(rule),
      dynamic_(dynamic_scaling),
      floor_(std::max<double>(floor, std::numeric_limits<float>::min())) {
  changes_.reserve(kHistory);
}

bool StopRuleWatch::Add(const StepRecord& record) {
  record_ = record;
  if (first_scale_ == 0) first_scale_ = record.scale_before;
  if (record.loss_scaling != record.scale_before) {
    if (changes_.size() == kHistory) {
      changes_.erase(changes_.begin());
      changes_cut_ = true;
    }
    changes_.push_back({record.step, record.loss_scaling});
  }
  const bool floor = ScaleOf(record) <= floor_;
  if (record.loss_is_finite()) {
    steps_ = -1;
    not_finite_ = 0;
  } else if (!record.found_inf || !dynamic_ || floor) {
    ++not_finite_;
  }
  if (steps_ >= 0) ++steps_;
  skipped_ = record.found_inf ? skipped_ + 1 : 0;
  at_floor_ = record.found_inf && dynamic_ && floor ? at_floor_ + 1 : 0;
  why_ = Why(record);
  return !why_.empty();
}

bool StopRuleWatch::AtEnd() {
  if (rule_.loss_not_finite() <= 0 || steps_ <= 0) return false;
  why_ = absl::StrCat("the run ended, and the loss was not finite in any of ",
                      Count(steps_, "step"));
  return true;
}

std::string StopRuleWatch::Why(const StepRecord& record) const {
  const auto at = [&] {
    return absl::StrCat(" with the loss scale ",
                        dynamic_ ? "at its floor of " : "constant at ",
                        ExactFloat(ScaleOf(record)));
  };
  if (rule_.loss_not_finite() > 0 && not_finite_ >= rule_.loss_not_finite() &&
      !record.loss_is_finite()) {
    return absl::StrCat("the loss is not finite in ",
                        Count(not_finite_, "step"), " in a row",
                        record.found_inf ? at() : ", though the gradients are");
  }
  if (rule_.skipped_at_floor() > 0 && at_floor_ >= rule_.skipped_at_floor()) {
    return absl::StrCat(Count(at_floor_, "skipped step"), " in a row", at());
  }
  if (rule_.skipped_in_a_row() > 0 && skipped_ >= rule_.skipped_in_a_row()) {
    return absl::StrCat(Count(skipped_, "skipped step"), " in a row");
  }
  return "";
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
  (*numbers)["stop.steps"] = static_cast<double>(steps_);
}

void StopRuleWatch::Restore(const std::map<std::string, double>& numbers) {
  const auto get = [&numbers](const char* key) -> int64_t {
    const auto found = numbers.find(key);
    // Whatever a manifest holds: at worst the rule begins to count anew.
    const double count = found == numbers.end() ? 0 : found->second;
    return count > 0 && count < 1e9 ? static_cast<int64_t>(count) : 0;
  };
  skipped_ = get("stop.skipped");
  at_floor_ = get("stop.at_floor");
  not_finite_ = get("stop.not_finite");
  // A run of before this was counted is taken to have had a finite loss.
  const auto steps = numbers.find("stop.steps");
  const bool none = steps != numbers.end() && steps->second >= 0;
  steps_ = none ? get("stop.steps") : -1;
}

}  // namespace runtime
}  // namespace halftone
