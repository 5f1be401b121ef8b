#include "runtime/profile/measured_steps.h"

#include <algorithm>
#include <cmath>

#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/json/json_reader.h"
#include "runtime/profile/step_costs.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMostTraceBytes = int64_t{1} << 30;

using Key = std::pair<std::string, bool>;
using OneStep = std::map<Key, std::vector<double>>;  // of the trace

// Between the two values beside it, as far as it lies; `values` are not empty.
double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] +
         (place - static_cast<double>(below)) * (values[above] - values[below]);
}
double Median(const std::vector<double>& values) {
  return Quantile(values, 0.5);
}

double Ms(const nlohmann::json& event) {
  const auto dur = event.find("dur");
  return dur != event.end() && dur->is_number() ? dur->get<double>() / 1000 : 0;
}

std::string Word(const nlohmann::json& event, const char* member) {
  const auto found = event.find(member);
  return found != event.end() && found->is_string() ? found->get<std::string>()
                                                    : "";
}

void AddStep(const OneStep& step, MeasuredSteps* all) {
  for (const auto& [key, times] : step) {
    std::vector<std::vector<double>>& known = all->ms[key];
    if (known.size() < times.size()) known.resize(times.size());
    for (size_t i = 0; i < times.size(); ++i) known[i].push_back(times[i]);
  }
}

// What is computed from one collective to the next.
struct Stretch {
  std::vector<size_t> steps;     // of the plan
  std::vector<double> total_ms;  // by the steps of the trace
  double medians_ms = 0;

  void Add(const std::vector<double>& times) {
    total_ms.resize(std::max(total_ms.size(), times.size()), 0);
    for (size_t t = 0; t < times.size(); ++t) total_ms[t] += times[t];
    medians_ms += Median(times);
  }
};

}  // namespace

// A step's own event stands behind those of its parts (Profile::Trace).
absl::StatusOr<MeasuredSteps> ParseTrace(absl::string_view content,
                                         absl::string_view file) {
  HT_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(content, file));
  const auto malformed = [file] {
    return ModelError(file,
                      ": expected a trace with whole steps, as halftone run "
                      "--profile=FILE writes it");
  };
  if (!json.is_object() || !json.contains("traceEvents")) return malformed();
  OneStep step;
  MeasuredSteps measured;
  double busy = 0;
  for (const nlohmann::json& event : json["traceEvents"]) {
    if (!event.is_object() || Word(event, "ph") != "X") continue;
    const std::string category = Word(event, "cat");
    if (category == "step") {
      AddStep(step, &measured);
      measured.host_ms.push_back(std::max(0.0, Ms(event) - busy));
      step.clear();
      busy = 0;
      continue;
    }
    const bool collective = category == Name(CostClass::kCollective);
    step[{Word(event, "name"), collective}].push_back(Ms(event));
    busy += Ms(event);
  }
  if (measured.host_ms.empty() || measured.ms.empty()) return malformed();
  return measured;
}

absl::StatusOr<MeasuredSteps> ReadTrace(const std::string& file) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(file, kMostTraceBytes));
  return ParseTrace(content, file);
}

SlowestSteps SlowestOf(int ranks, const Plan& plan,
                       const MeasuredSteps& measured) {
  SlowestSteps slowest;
  slowest.host_ms = Median(measured.host_ms);
  const int64_t collectives =
      std::count_if(plan.steps.begin(), plan.steps.end(),
                    [](const Step& step) { return IsCollective(step); });
  // What follows the last collective goes on, after what the host does, until
  // the next step's first.
  std::vector<Stretch> stretches(std::max<int64_t>(collectives, 1));
  stretches[0].Add(measured.host_ms);
  size_t passed = 0;
  std::map<Key, size_t> seen;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Key key{plan.steps[s].name, IsCollective(plan.steps[s])};
    const auto found = measured.ms.find(key);
    const size_t time = seen[key]++;
    const bool known =
        found != measured.ms.end() && time < found->second.size();
    slowest.ms.push_back(known ? Median(found->second[time]) : -1);
    if (key.second) {
      ++passed;
    } else if (known) {
      Stretch& stretch = stretches[passed % stretches.size()];
      stretch.steps.push_back(s);
      stretch.Add(found->second[time]);
    }
  }
  for (const Stretch& stretch : stretches) {
    if (!(stretch.medians_ms > 0)) continue;
    const double factor =
        Quantile(stretch.total_ms, std::pow(0.5, 1.0 / ranks)) /
        stretch.medians_ms;
    for (size_t s : stretch.steps) slowest.ms[s] *= factor;
    if (&stretch == &stretches[0]) slowest.host_ms *= factor;
  }
  return slowest;
}

}  // namespace runtime
}  // namespace halftone
