// summary.json: its fields are a promise to scripts (docs/formats.md).
#include <cmath>

#include "graph/base/text.h"
#include "graph/strategy/fields.h"
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

// Of what was never measured.
Json NumberIf(bool measured, double value) {
  return measured ? Number(value) : Json(nullptr);
}

}  // namespace

std::string SummaryJson(const EndOfRun& end) {
  const Rank& rank = *end.rank;
  const Progress& p = rank.progress;
  const TrainConfig& config = rank.config();
  const StepClock& steps = end.times->steps;
  const bool timed = steps.steps() > 1;
  Json metrics = Json::object();
  const bool has_eval = HasEval(rank);
  for (const auto& [name, m] : p.eval.metrics) {
    if (!has_eval) break;
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
      {"eval_loss", NumberIf(has_eval, p.eval.loss)},
      {"best_epoch", p.best_step >= 0 ? Json(p.best_epoch) : Json(nullptr)},
      // The first step is left out.
      {"samples_per_second", NumberIf(timed, steps.samples_per_second())},
      {"step_ms_median", NumberIf(timed, steps.median_ms())},
      {"step_ms_p95", NumberIf(timed, steps.p95_ms())},
      {"peak_bytes", rank.executor->allocated_bytes()},
      {"planned_bytes", rank.executor->planned_bytes()},
      {"ranks", rank.sampler.world_size},
      {"seed", config.strategy.train().seed()},
      {"shuffle", config.shuffle},
      {"deterministic", config.deterministic},
      {"data", config.data},
      {"batch_size", rank.sampler.batch},
      {"level", config.strategy.amp().level()},
      {"dtype", config.strategy.amp().dtype()},
      {"fingerprint", config.fingerprint},
      {"strategy", StrategyText(config.strategy)},
  };
  if (end.profile != nullptr) summary["profile"] = end.profile->Json();
  return summary.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace runtime
}  // namespace halftone
