#include "runtime/report/tensorboard_log.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {

absl::StatusOr<std::unique_ptr<TensorBoardLog>> TensorBoardLog::Create(
    const std::string& directory) {
  HT_ASSIGN_OR_RETURN(auto file, EventFile::Create(directory));
  return absl::WrapUnique(new TensorBoardLog(std::move(file)));
}

// Steps behind the checkpoint were lost, and come again: MetricsLog cuts them.
void TensorBoardLog::On(const RunStarted& run) {
  parts_known_ = run.parts_known;
  if (run.resumed.has_value()) file_->AddRestart(run.resumed->step + 1);
}

void TensorBoardLog::On(const StepEvent& event) {
  file_->AddScalar("loss", event.step, event.loss);
  file_->AddScalar("skipped", event.step, static_cast<float>(event.skipped));
  file_->AddScalar("lr", event.step, event.lr);
  file_->AddScalar("loss_scaling", event.step, event.loss_scaling);
  file_->AddScalar("grad_norm", event.step, event.grad_norm);
  for (const PartLoss& part : event.parts) {
    file_->AddScalar(absl::StrCat("losses/", part.name), event.step,
                     static_cast<float>(part.loss));
    if (!part.loss_scaling.has_value()) continue;
    file_->AddScalar(absl::StrCat("loss_scaling/", part.name), event.step,
                     *part.loss_scaling);
  }
  AddTimes(event.step, event.times);
  for (const FetchedValue& fetch : event.fetches) AddFetch(event.step, fetch);
  if (event.exponents.has_value()) {
    AddExponents("exponents", event.step, *event.exponents);
  }
}

void TensorBoardLog::AddTimes(int64_t step, const EventTimes& times) {
  const StepTimes& ms = times.per_step;
  const auto add = [&](absl::string_view tag, double value) {
    file_->AddScalar(tag, step, static_cast<float>(value));
  };
  add("samples_per_second", times.samples_per_second);
  add("ms/step", ms.total);
  add("ms/data", ms.data);
  if (!parts_known_) return;
  add("ms/fwd_bwd", ms.forward_backward);
  add("ms/comm", ms.communicate);
  add("ms/update", ms.update);
}

// Over exponents, flushed ones below the least and overflowed ones above the
// most; and their shares.
void TensorBoardLog::AddExponents(const std::string& tag, int64_t step,
                                  const ExponentFacts& facts) {
  const ExponentHistogram& h = facts.histogram;
  EventHistogram shown;
  shown.min = kLeastExponent - 1;
  shown.max = kMostExponent + 2;
  const auto add = [&shown](int64_t count) {
    const size_t bins = shown.limits.size();
    shown.limits.push_back(shown.min + 1 + static_cast<double>(bins));
    shown.counts.push_back(static_cast<double>(count));
  };
  add(h.flushed);
  for (const int64_t count : h.bins) add(count);
  add(h.overflowed);
  file_->AddHistogram(tag, step, shown);
  file_->AddScalar(tag + "/flushed", step,
                   static_cast<float>(h.flushed_share()));
  file_->AddScalar(tag + "/overflowed", step,
                   static_cast<float>(h.overflowed_share()));
}

void TensorBoardLog::AddFetch(int64_t step, const FetchedValue& fetch) {
  const std::vector<float>& values = fetch.values;
  if (fetch.exponents.has_value()) {
    AddExponents(fetch.name, step, *fetch.exponents);
  } else if (fetch.histogram) {
    EventHistogram shown;
    shown.min = values[0];
    shown.max = values[1];
    shown.counts.assign(values.begin() + 3, values.end());
    const auto bins = static_cast<double>(shown.counts.size());
    for (size_t i = 1; i <= shown.counts.size(); ++i) {
      shown.limits.push_back(shown.min + (shown.max - shown.min) *
                                             static_cast<double>(i) / bins);
    }
    file_->AddHistogram(fetch.name, step, shown);
  } else if (values.size() == 1) {
    file_->AddScalar(fetch.name, step, values[0]);
  }
}

void TensorBoardLog::On(const GraphEvent& graph) {
  file_->AddGraph(GraphDef(graph.nodes));
}

void TensorBoardLog::On(const ScaleEvent& event) {
  file_->AddScalar("scale_events/loss_scaling", event.step, event.loss_scaling);
  if (!event.skipped) return;
  file_->AddText("scale_events/first_bad", event.step, event.first_bad);
}

void TensorBoardLog::On(const EvalEvent& event) {
  file_->AddScalar("eval/loss", event.step, static_cast<float>(event.loss));
  for (const PartLoss& part : event.parts) {
    file_->AddScalar(absl::StrCat("eval/losses/", part.name), event.step,
                     static_cast<float>(part.loss));
  }
  for (const MetricValue& metric : event.metrics) {
    file_->AddScalar(absl::StrCat("eval/", metric.name), event.step,
                     static_cast<float>(metric.value));
  }
}

}  // namespace runtime
}  // namespace halftone
