#include "tools/search/trials.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/strategy/fields.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace tools {
namespace {

// A run is the program's and that of its settings which are no part of it.
std::string RunsOf(const CompiledModel& model) {
  proto::Strategy settings = model.strategy;
  settings.clear_amp();
  return absl::StrCat(model.fingerprint, " ",
                      Hex64(StableHash(StrategyText(settings))), " seed ");
}

}  // namespace

absl::StatusOr<std::vector<TrialValue>> Trials::Measure(
    const CompiledModel& model, const std::string& what,
    const Decided& decided) {
  ++programs_;
  std::vector<TrialValue> values;
  std::vector<std::string> shown;
  const std::string name = RunsOf(model);
  const int made_before = made_;
  const auto begin = std::chrono::steady_clock::now();
  while (static_cast<int>(values.size()) < settings_.runs) {
    const int64_t seed =
        model.strategy.train().seed() + static_cast<int64_t>(values.size());
    const std::string key = absl::StrCat(name, seed);
    if (kept_.Find(key) == nullptr) {
      HT_ASSIGN_OR_RETURN(const TrialValue value, settings_.run(model, seed));
      HT_RETURN_IF_ERROR(kept_.Keep(key, value));
      ++made_;
    }
    ++runs_;
    values.push_back(*kept_.Find(key));
    shown.push_back(settings_.metric.Text(values.back()));
    // After one that diverges the others change nothing.
    if (!values.back().has_value()) break;
    if (decided != nullptr && decided(values)) break;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  settings_.say(absl::StrFormat(
      "trial %-3d %-40s %s %s%s", programs_, what, settings_.metric.name,
      absl::StrJoin(shown, ", "),
      made_ > made_before ? absl::StrFormat("  (%.1f s)", seconds)
                          : "  (known)"));
  return values;
}

}  // namespace tools
}  // namespace halftone
