#include "runtime/report/summary.h"

#include <optional>

#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "graph/base/json/json_of_number.h"
#include "graph/strategy/fields.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFile[] = "summary.json";

Json Metrics(const EvalEvent& eval) {
  Json metrics = Json::object();
  for (const MetricValue& metric : eval.metrics) {
    metrics[metric.name] = {{"value", metric.value},
                            {"correct", metric.correct},
                            {"total", metric.total}};
  }
  return metrics;
}

Json ScaleEvents(const std::vector<ScaleEvent>& events) {
  Json json = Json::array();
  for (const ScaleEvent& event : events) {
    Json& added = json.emplace_back(
        Json{{"step", event.step},
             {"epoch", event.epoch},
             {"skipped", event.skipped},
             {"scale_before", JsonOfNumber(event.scale_before)},
             {"loss_scaling", JsonOfNumber(event.loss_scaling)},
             {"first_bad", event.skipped ? Json(event.first_bad) : Json()}});
    if (!event.part.empty()) added["part"] = event.part;
  }
  return json;
}

Json ProfileJson(const ProfileTable& table) {
  Json json = {{"steps", table.steps},
               {"step_ms", table.step_ms},
               {"device", table.device},
               {"classes", Json::array()}};
  for (const ProfileTable::Row& row : table.rows) {
    Json one = {{"class", row.name},
                {"ms", row.ms},
                {"kernels", row.kernels},
                {"bytes", row.bytes},
                {"flops", row.flops}};
    if (row.roofline_ms.has_value()) one["roofline_ms"] = *row.roofline_ms;
    json["classes"].push_back(std::move(one));
  }
  json["measured"] = table.measured;
  json["dearest"] = Json::array();
  for (const ProfileTable::Op& op : table.dearest) {
    Json one = {{"name", op.name}, {"kernel", op.kernel}, {"shape", op.shape},
                {"ms", op.ms},     {"bytes", op.bytes},   {"flops", op.flops}};
    if (op.predicted_ms.has_value()) {
      one["predicted_ms"] = *op.predicted_ms;
      one["roofline_ms"] = *op.roofline_ms;
      one["bound"] = op.bound;
    }
    if (!op.hint.empty()) one["hint"] = op.hint;
    json["dearest"].push_back(std::move(one));
  }
  return json;
}

// Whether the file is there, of a run that ended well after `step` steps.
bool IsOfWholeRun(const std::string& directory, int64_t step) {
  const auto opened = Directory::Open(directory);
  if (!opened.ok()) return false;
  const auto text = opened->Read(kFile);
  if (!text.ok()) return false;
  const auto summary = nlohmann::json::parse(*text, nullptr,
                                             /*allow_exceptions=*/false);
  return summary.is_object() && summary.value("exit", Json(-1)) == 0 &&
         summary.value("steps_attempted", Json(-1)) == step;
}

}  // namespace

std::string SummaryJson(const RunStarted& run, const RunEnded& end) {
  // Of the steps' times, and of the eval, if there are any.
  const auto timed = [&end](double StepSpeed::*value) {
    return end.speed.has_value() ? JsonOfNumber((*end.speed).*value)
                                 : Json(nullptr);
  };
  const bool has_eval = end.eval.has_value();
  const proto::Strategy& strategy = run.strategy;
  Json summary = {
      {"schema", 1},
      {"exit", end.exit_code},
      {"steps_attempted", end.step},
      {"steps_applied", end.applied},
      {"steps_skipped", end.step - end.applied},
      {"epochs", end.epoch},
      {"loss_first", JsonOfNumber(end.first_loss)},
      {"loss_last", JsonOfNumber(end.last_loss)},
      {"loss_scaling", JsonOfNumber(end.loss_scaling)},
      {"scale_events", ScaleEvents(end.scale_events)},
      {"metrics", has_eval ? Metrics(*end.eval) : Json::object()},
      {"eval_loss", has_eval ? JsonOfNumber(end.eval->loss) : Json(nullptr)},
      {"best_epoch",
       end.best_epoch.has_value() ? Json(*end.best_epoch) : Json(nullptr)},
      // The first step is left out.
      {"samples_per_second", timed(&StepSpeed::samples_per_second)},
      {"step_ms_median", timed(&StepSpeed::median_ms)},
      {"step_ms_p95", timed(&StepSpeed::p95_ms)},
      {"peak_bytes", end.peak_bytes},
      {"planned_bytes", end.planned_bytes},
      {"optimizer_bytes", end.optimizer_bytes},
      {"ranks", run.world_size},
      {"seed", strategy.train().seed()},
      {"shuffle", run.shuffle},
      {"deterministic", run.deterministic},
      {"data", run.data},
      {"samples_left_out", run.left_out},
      {"batch_size", run.batch},
      {"level", strategy.amp().level()},
      {"dtype", strategy.amp().dtype()},
      {"fingerprint", run.fingerprint},
      {"strategy", StrategyText(strategy)},
  };
  if (has_eval && !end.eval->parts.empty()) {
    Json& losses = summary["eval_losses"] = Json::object();
    for (const PartLoss& part : end.eval->parts) {
      losses[part.name] = JsonOfNumber(part.loss);
    }
  }
  if (end.profile.has_value()) summary["profile"] = ProfileJson(*end.profile);
  return summary.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool KeepsSummary(const RunStarted& run, const RunEnded& end, bool evaluated,
                  const std::string& directory) {
  const bool trained = !run.resumed || end.step != run.resumed->step;
  return !trained && !evaluated && IsOfWholeRun(directory, end.step);
}

void SummaryFile::On(const RunEnded& end) {
  if (KeepsSummary(run_, end, evaluated_, directory_)) return;
  content_ = SummaryJson(run_, end);
}

absl::Status SummaryFile::Flush() {
  if (content_.empty()) return absl::OkStatus();
  HT_RETURN_IF_ERROR(is_ours_());
  HT_ASSIGN_OR_RETURN(const Directory directory, Directory::Make(directory_));
  HT_RETURN_IF_ERROR(directory.Write(kFile, content_));
  content_.clear();
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone
