#include "runtime/train/evaluator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "runtime/train/run_plans.h"

namespace halftone {
namespace runtime {

Evaluator::Evaluator(const Dataset* data, const std::vector<FeedSpec>& specs,
                     const SamplerOptions& sampler, int64_t merged_steps,
                     int readers, Executor* executor)
    : data_(data),
      specs_(specs),
      sampler_(EvalSampler(sampler, merged_steps, data->size())),
      readers_(readers),
      executor_(executor),
      feeds_(*executor->program().FindEntry(kEvalEntry), specs, &implicit_) {
  if (sampler.shards > 0 && sampler.shards % sampler.world_size == 0) {
    steps_of_group_ = sampler.shards / sampler.world_size;
  }
  const Program& program = executor->program();
  summed_ = {kLossSum, kCount};
  for (size_t i = 0; i < program.loss.parts.size(); ++i) {
    summed_.push_back(absl::StrCat(kLossPartPrefix, i));
  }
  for (const MetricInfo& info : program.metrics) {
    summed_.push_back(absl::StrCat(kMetricPrefix, info.name));
    summed_.push_back(absl::StrCat(kOverPrefix, info.name));
  }
}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(
    const Dataset* data, const std::vector<FeedSpec>& specs,
    const SamplerOptions& sampler, int64_t merged_steps, int readers,
    Executor* executor) {
  auto evaluator = absl::WrapUnique(
      new Evaluator(data, specs, sampler, merged_steps, readers, executor));
  const auto prepare = [executor](absl::string_view entry,
                                  const SymbolValues& symbols) {
    return executor->Prepare(entry, symbols);
  };
  HT_RETURN_IF_ERROR(
      evaluator->bindings_.Prepare(kEvalEntry, evaluator->sampler_, prepare));
  return evaluator;
}

absl::Status Evaluator::ReadOne(int64_t ticket, const OnStep& on_step,
                                StepTotals* totals) {
  HT_ASSIGN_OR_RETURN(const StepView view, executor_->Read(ticket));
  if (on_step != nullptr) HT_RETURN_IF_ERROR(on_step(view));
  std::vector<float> step;
  for (const std::string& name : summed_) {
    step.push_back(static_cast<float>(view.Scalar(name)));
  }
  totals->Add(std::move(step));
  return absl::OkStatus();
}

EvalReport Evaluator::ReportOf(const std::vector<double>& totals) const {
  EvalReport report;
  report.samples = static_cast<double>(samples());
  // What the loss is a mean over: labels, of which a sample may have many.
  const double labels = totals[1];
  const auto mean = [labels](double sum) {
    return labels > 0 ? sum / labels : std::numeric_limits<double>::quiet_NaN();
  };
  report.loss = mean(totals[0]);
  size_t next = 2;
  for (const LossPart& part : executor_->program().loss.parts) {
    report.parts[part.name] = mean(totals[next++]);
  }
  for (const MetricInfo& info : executor_->program().metrics) {
    Metric& metric = report.metrics[info.name];
    metric.correct = totals[next++];
    metric.total = totals[next++];
  }
  return report;
}

absl::StatusOr<EvalReport> Evaluator::Run(Activity* activity,
                                          const OnStep& on_step) {
  ReaderOptions options;
  options.workers = readers_;
  const std::unique_ptr<BatchReader> reader =
      MakeBatchReader(data_, specs_, sampler_, options);
  const Entry& entry = *executor_->program().FindEntry(kEvalEntry);
  StepTotals totals(steps_of_group_);
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
      HT_RETURN_IF_ERROR(ReadOne(ticket - --unread, on_step, &totals));
    }
  }
  while (unread > 0) {
    HT_RETURN_IF_ERROR(ReadOne(ticket - --unread, on_step, &totals));
  }
  const std::vector<double>& sums = totals.Totals();
  return ReportOf(sums.empty() ? std::vector<double>(summed_.size()) : sums);
}

}  // namespace runtime
}  // namespace halftone
