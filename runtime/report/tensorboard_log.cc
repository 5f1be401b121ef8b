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
  for (const FetchedValue& fetch : event.fetches) {
    if (fetch.values.size() != 1) continue;
    file_->AddScalar(fetch.name, event.step, fetch.values[0]);
  }
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
