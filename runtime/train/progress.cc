#include "runtime/train/progress.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kMetric[] = "eval.metric.";
constexpr char kPart[] = "eval.part.";
constexpr char kCorrect[] = ".correct";
constexpr char kTotal[] = ".total";

// Calls visit(key, field) for every plain field: the one list of them.
template <typename P, typename Visit>
void VisitFields(P& p, Visit visit) {
  visit("step", p.step);
  visit("applied", p.applied);
  visit("epoch", p.epoch);
  visit("sample", p.sample);
  visit("loss_scaling", p.loss_scaling);
  visit("good_steps", p.good_steps);
  visit("bad_steps", p.bad_steps);
  visit("since_event.sum", p.since_event.sum);
  visit("since_event.count", p.since_event.count);
  visit("since_event.skipped", p.since_event.skipped);
  visit("since_event.not_finite", p.since_event.not_finite);
  visit("first_loss", p.first_loss);
  visit("last_loss", p.last_loss);
  visit("eval.loss", p.eval.loss);
  visit("eval.samples", p.eval.samples);
  visit("eval.step", p.eval_step);
  visit("eval.due", p.eval_due);
  visit("best", p.best);
  visit("best.step", p.best_step);
  visit("best.epoch", p.best_epoch);
}

// Larger counts are not exact in a double.
constexpr double kMostCount = 9007199254740992.0;

bool IsWhole(double value, double least) {
  return value >= least && value <= kMostCount && std::floor(value) == value;
}

// -1 stands for an event that has not been.
bool IsStepOfEvent(absl::string_view key) {
  return key == "eval.step" || key == "best.step";
}

absl::Status NotACount(absl::string_view key, double found) {
  return ModelError("numbers: ", key, ": expected a count, found ",
                    ExactDouble(found));
}

}  // namespace

void Progress::Add(const StepRecord& record, int64_t next_epoch,
                   int64_t next_sample) {
  step = record.step;
  applied = record.applied;
  epoch = next_epoch;
  sample = next_sample;
  loss_scaling = record.loss_scaling;
  for (size_t i = 0; i < record.parts.size(); ++i) {
    part_scales[i] = record.parts[i].after;
  }
  good_steps = record.good_steps;
  bad_steps = record.bad_steps;
  since_event.Add(record);
}

bool Progress::Add(const EvalReport& report, const std::string& metric) {
  eval = report;
  eval_step = step;
  eval_due = 0;
  // Larger is better for both.
  double value = -report.loss;
  const auto found = report.metrics.find(metric);
  if (found != report.metrics.end()) {
    const Metric& m = found->second;
    value = m.total > 0 ? m.correct / m.total : 0;
  }
  // What is no number is not the best; an earlier version may have kept one.
  if (std::isnan(value) || (best_step >= 0 && best >= value)) return false;
  best = value;
  best_step = step;
  best_epoch = sample > 0 ? epoch + 1 : epoch;
  return true;
}

std::map<std::string, double> ToNumbers(const Progress& progress) {
  std::map<std::string, double> numbers;
  VisitFields(progress, [&numbers](const char* key, const auto& field) {
    numbers[key] = static_cast<double>(field);
  });
  for (const auto& [name, metric] : progress.eval.metrics) {
    numbers[absl::StrCat(kMetric, name, kCorrect)] = metric.correct;
    numbers[absl::StrCat(kMetric, name, kTotal)] = metric.total;
  }
  for (const auto& [name, loss] : progress.eval.parts) {
    numbers[absl::StrCat(kPart, name)] = loss;
  }
  return numbers;
}

absl::StatusOr<Progress> FromNumbers(
    const std::map<std::string, double>& numbers) {
  Progress progress;
  absl::Status status;
  VisitFields(progress, [&](const char* key, auto& field) {
    const auto found = numbers.find(key);
    if (found == numbers.end()) return;
    using Field = std::decay_t<decltype(field)>;
    if (std::is_integral_v<Field> &&
        !IsWhole(found->second, IsStepOfEvent(key) ? -1 : 0)) {
      status.Update(NotACount(key, found->second));
      return;
    }
    field = static_cast<Field>(found->second);
  });
  for (const auto& [key, value] : numbers) {
    if (absl::StartsWith(key, kPart)) {
      progress.eval.parts[key.substr(sizeof(kPart) - 1)] = value;
    }
    if (!absl::StartsWith(key, kMetric)) continue;
    // A model's own metric may be negative or nan; it is shown as an integer.
    if (std::isfinite(value) && std::abs(value) > kMostCount) {
      status.Update(NotACount(key, value));
    }
    absl::string_view name = key;
    name.remove_prefix(sizeof(kMetric) - 1);
    if (absl::EndsWith(name, kCorrect)) {
      name.remove_suffix(sizeof(kCorrect) - 1);
      progress.eval.metrics[std::string(name)].correct = value;
    } else if (absl::EndsWith(name, kTotal)) {
      name.remove_suffix(sizeof(kTotal) - 1);
      progress.eval.metrics[std::string(name)].total = value;
    }
  }
  // The two that are doubles for their sums, and are shown as integers.
  for (const double count :
       {progress.since_event.count, progress.eval.samples}) {
    if (!(count >= 0 && count <= kMostCount)) {
      status.Update(NotACount("since_event.count, eval.samples", count));
    }
  }
  if (progress.applied > progress.step) {
    status.Update(ModelError("numbers: applied: expected at most step, ",
                             progress.step, ", found ", progress.applied));
  }
  HT_RETURN_IF_ERROR(status);
  return progress;
}

// Per number: the key, a zero byte, the eight bytes of the value.
std::string Encode(const std::map<std::string, double>& numbers) {
  std::string encoded;
  for (const auto& [key, value] : numbers) {
    encoded.append(key.c_str(), key.size() + 1);
    encoded.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return encoded;
}

absl::StatusOr<std::map<std::string, double>> Decode(
    const std::string& encoded) {
  std::map<std::string, double> numbers;
  size_t at = 0;
  while (at < encoded.size()) {
    const size_t zero = encoded.find('\0', at);
    double value = 0;
    if (zero == std::string::npos || zero + 1 + sizeof(value) > encoded.size())
      return CommunicationError("rank 0 sent a damaged resume point");
    std::memcpy(&value, &encoded[zero + 1], sizeof(value));
    numbers[encoded.substr(at, zero - at)] = value;
    at = zero + 1 + sizeof(value);
  }
  return numbers;
}

}  // namespace runtime
}  // namespace halftone
