// summary.json: see INTERFACE, "For scripts".
#include <cmath>

#include "graph/base/text.h"
#include "nlohmann/json.hpp"
#include "runtime/train/report_text.h"

namespace halftone {
namespace runtime {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no nan or inf: they are strings, as in metrics.jsonl.
Json Number(double value) {
  if (std::isfinite(value)) return value;
  return ExactDouble(value);
}

}  // namespace

std::string SummaryJson(const EndOfRun& end) {
  const Rank& rank = *end.rank;
  const Progress& p = rank.progress;
  const TrainConfig& config = rank.config();
  const StepClock& steps = end.times->steps;
  Json metrics = Json::object();
  for (const auto& [name, m] : p.eval.metrics) {
    metrics[name] = {{"value", m.total > 0 ? m.correct / m.total : 0},
                     {"correct", static_cast<int64_t>(m.correct)},
                     {"total", static_cast<int64_t>(m.total)}};
  }
  Json summary = {
      {"schema", 1},
      {"exit", end.exit_code},
      {"steps_attempted", p.step},
      {"steps_applied", p.applied},
      {"steps_skipped", p.step - p.applied},
      {"epochs", p.epoch},
      {"loss_first", Number(p.first_loss)},
      {"loss_last", Number(p.last_loss)},
      {"loss_scaling", Number(p.loss_scaling)},
      {"metrics", metrics},
      {"eval_loss", Number(p.eval.loss)},
      {"best_epoch", p.best_epoch},
      {"samples_per_second", steps.samples_per_second()},
      {"step_ms_median", steps.median_ms()},
      {"step_ms_p95", steps.p95_ms()},
      {"peak_bytes", rank.executor->allocated_bytes()},
      {"planned_bytes", rank.executor->planned_bytes()},
      {"ranks", rank.sampler.world_size},
      {"seed", config.seed},
      {"shuffle", config.shuffle},
      {"deterministic", config.deterministic},
      {"data", config.data},
      {"batch_size", rank.sampler.batch},
      {"level", config.level},
      {"dtype", config.dtype},
      {"fingerprint", config.fingerprint},
      {"strategy", config.strategy_text},
  };
  if (end.profile != nullptr) summary["profile"] = end.profile->Json();
  return summary.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace runtime
}  // namespace halftone
