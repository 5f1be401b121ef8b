#include "runtime/train/evaluator.h"

#include <algorithm>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"

namespace halftone {
namespace runtime {

Evaluator::Evaluator(const Dataset* data, const std::vector<FeedSpec>& specs,
                     const SamplerOptions& sampler, int readers,
                     Executor* executor)
    : data_(data),
      specs_(specs),
      sampler_(sampler),
      readers_(readers),
      executor_(executor),
      feeds_(*executor->program().FindEntry(kEvalEntry), specs, &implicit_) {
  sampler_.size = data->size();
  sampler_.tail = Tail::kExact;
  sampler_.shuffle = false;
}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(
    const Dataset* data, const std::vector<FeedSpec>& specs,
    const SamplerOptions& sampler, int readers, Executor* executor) {
  auto evaluator =
      absl::WrapUnique(new Evaluator(data, specs, sampler, readers, executor));
  HT_RETURN_IF_ERROR(
      evaluator->bindings_.Prepare(kEvalEntry, evaluator->sampler_, *executor));
  return evaluator;
}

absl::Status Evaluator::ReadOne(int64_t ticket, const OnStep& on_step,
                                EvalReport* report) {
  HT_ASSIGN_OR_RETURN(const StepView view, executor_->Read(ticket));
  if (on_step != nullptr) HT_RETURN_IF_ERROR(on_step(view));
  report->loss += view.Scalar(kLossSum);  // a sum until the end
  report->samples += view.Scalar(kCount);
  const std::vector<LossPart>& parts = executor_->program().loss.parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    report->parts[parts[i].name] +=
        view.Scalar(absl::StrCat(kLossPartPrefix, i));
  }
  for (const MetricInfo& info : executor_->program().metrics) {
    Metric& metric = report->metrics[info.name];
    metric.correct += view.Scalar(absl::StrCat(kMetricPrefix, info.name));
    metric.total += view.Scalar(absl::StrCat(kOverPrefix, info.name));
  }
  return absl::OkStatus();
}

absl::StatusOr<EvalReport> Evaluator::Run(Activity* activity,
                                          const OnStep& on_step) {
  ReaderOptions options;
  options.workers = readers_;
  const std::unique_ptr<BatchReader> reader =
      MakeBatchReader(data_, specs_, sampler_, options);
  const Entry& entry = *executor_->program().FindEntry(kEvalEntry);
  EvalReport report;
  int64_t unread = 0, ticket = -1, taken = 0;
  while (true) {
    HT_ASSIGN_OR_RETURN(const Batch* batch, reader->Next());
    if (batch == nullptr) break;
    implicit_.largest_count =
        static_cast<float>(LossElements(entry, batch->share.largest_count));
    implicit_.first_sample = batch->share.first_sample;
    HT_ASSIGN_OR_RETURN(
        ticket, executor_->Execute(bindings_.Of(batch->share.global_count),
                                   feeds_.Point(*batch)));
    if (activity != nullptr) {
      taken += batch->share.global_count;
      activity->Did(taken);
    }
    if (++unread == 3) {
      HT_RETURN_IF_ERROR(ReadOne(ticket - --unread, on_step, &report));
    }
  }
  while (unread > 0) {
    HT_RETURN_IF_ERROR(ReadOne(ticket - --unread, on_step, &report));
  }
  const auto mean = [&report](double sum) {
    return report.samples > 0 ? sum / report.samples
                              : std::numeric_limits<double>::quiet_NaN();
  };
  report.loss = mean(report.loss);
  for (auto& [name, sum] : report.parts) sum = mean(sum);
  return report;
}

}  // namespace runtime
}  // namespace halftone
