#include "runtime/profile/measured_steps.h"

#include <algorithm>

#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/json/json_reader.h"
#include "runtime/profile/step_costs.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMostTraceBytes = int64_t{1} << 30;

using Key = std::pair<std::string, bool>;
// Of one step of the trace; of several: in place of a number all of them.
using OneStep = std::map<Key, std::vector<double>>;
using AllSteps = std::map<Key, std::vector<std::vector<double>>>;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
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

void AddStep(const OneStep& step, AllSteps* all) {
  for (const auto& [key, times] : step) {
    std::vector<std::vector<double>>& known = (*all)[key];
    if (known.size() < times.size()) known.resize(times.size());
    for (size_t i = 0; i < times.size(); ++i) known[i].push_back(times[i]);
  }
}

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
  AllSteps all;
  std::vector<double> host;
  double busy = 0;
  for (const nlohmann::json& event : json["traceEvents"]) {
    if (!event.is_object() || Word(event, "ph") != "X") continue;
    const std::string category = Word(event, "cat");
    if (category == "step") {
      AddStep(step, &all);
      host.push_back(std::max(0.0, Ms(event) - busy));
      step.clear();
      busy = 0;
      continue;
    }
    const bool collective = category == Name(CostClass::kCollective);
    step[{Word(event, "name"), collective}].push_back(Ms(event));
    busy += Ms(event);
  }
  if (host.empty() || all.empty()) return malformed();
  MeasuredSteps measured;
  measured.host_ms = Median(host);
  for (const auto& [key, times] : all) {
    for (const std::vector<double>& of_one : times) {
      measured.ms[key].push_back(Median(of_one));
    }
  }
  return measured;
}

absl::StatusOr<MeasuredSteps> ReadTrace(const std::string& file) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(file, kMostTraceBytes));
  return ParseTrace(content, file);
}

std::vector<double> MeasuredMs(const Plan& plan,
                               const MeasuredSteps& measured) {
  std::map<Key, size_t> seen;
  std::vector<double> ms;
  for (const Step& step : plan.steps) {
    const Key key{step.name, IsCollective(step)};
    const auto found = measured.ms.find(key);
    const size_t time = seen[key]++;
    const bool known =
        found != measured.ms.end() && time < found->second.size();
    ms.push_back(known ? found->second[time] : -1);
  }
  return ms;
}

}  // namespace runtime
}  // namespace halftone
