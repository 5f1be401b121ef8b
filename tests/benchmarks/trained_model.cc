#include "tests/benchmarks/trained_model.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/io/model_printer.h"
#include "graph/io/model_reader.h"
#include "graph/ir/well_known.h"
#include "graph/zoo/zoo.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "passes/options/options.h"
#include "runtime/gpu/gpu_library.h"

namespace halftone {
namespace {

double NowMs() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<ModelFile> Source(const TrainedModelSpec& spec) {
  const std::vector<std::string> names = ZooNames();
  if (std::find(names.begin(), names.end(), spec.model) == names.end()) {
    return ReadModel(spec.model);
  }
  ZooOptions options;
  if (spec.sequence > 0) options.sequence = spec.sequence;
  HT_ASSIGN_OR_RETURN(const proto::Model graph, ZooModel(spec.model, options));
  return ParseModel(PrintModel(graph), absl::StrCat(spec.model, ".pbtxt"));
}

// SGD with momentum at a rate that moves every weight and ends nothing.
passes::StrategyFile Strategy(const TrainedModelSpec& spec) {
  passes::StrategyFile file;
  proto::Strategy& strategy = file.strategy;
  strategy.mutable_amp()->set_level(spec.level);
  strategy.mutable_amp()->set_dtype(spec.dtype);
  proto::LossScaling& scaling = *strategy.mutable_amp()->mutable_loss_scaling();
  scaling.set_use_dynamic_loss_scaling(spec.dynamic_scaling);
  scaling.set_init_loss_scaling(32768);
  strategy.mutable_optimizer()->mutable_momentum()->set_momentum(0.9);
  strategy.mutable_lr()->set_base(1e-3);
  strategy.mutable_train()->set_batch_size(spec.batch);
  return file;
}

}  // namespace

absl::StatusOr<BenchmarkDevice> OpenBenchmarkDevice(
    int gpu, int threads, const std::string& library) {
  BenchmarkDevice opened;
  if (gpu < 0) {
    opened.device = runtime::MakeCpuDevice(0, threads);
    opened.kernels = &kernels::Kernels();
    opened.keys = opened.kernels->Keys();
    return opened;
  }
  HT_ASSIGN_OR_RETURN(const runtime::GpuLibrary* cuda,
                      runtime::GpuLibrary::OpenAt(library));
  HT_ASSIGN_OR_RETURN(opened.device, (*cuda)->make_device(gpu));
  opened.kernels = &cuda->kernels();
  opened.keys = opened.kernels->Keys();
  return opened;
}

absl::Status TrainedModel::Compile(const TrainedModelSpec& spec,
                                   const BenchmarkDevice& device) {
  HT_ASSIGN_OR_RETURN(const ModelFile source, Source(spec));
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::ResolveOptions(Strategy(spec), {}));
  HT_ASSIGN_OR_RETURN(
      model_,
      passes::Compile(source, options,
                      passes::KernelSet(device.device->target(), device.keys),
                      passes::CompileFlags()));
  return absl::OkStatus();
}

// Random images and labels, made once and fed again and again.
absl::Status TrainedModel::MakeBatch(int64_t batch) {
  specs_ = runtime::FeedSpecsOf(*model_.program);
  HT_ASSIGN_OR_RETURN(
      data_, runtime::OpenData(absl::StrCat("synthetic:", batch), specs_,
                               {{}, /*seed=*/1}));
  runtime::SamplerOptions sampler;
  sampler.size = sampler.batch = batch;
  sampler.world_size = 1;
  reader_ = runtime::MakeBatchReader(data_.train.get(), specs_, sampler, {});
  HT_ASSIGN_OR_RETURN(batch_, reader_->Next());
  const Entry& entry = *model_.program->FindEntry(kTrainEntry);
  implicit_.seed = 1;
  implicit_.schedule[0] = 1e-3f;
  implicit_.schedule[1] = 1e6f;  // steps: more than anybody measures
  implicit_.largest_count =
      static_cast<float>(runtime::LossElements(entry, batch));
  feeds_ = std::make_unique<runtime::FeedList>(entry, specs_, &implicit_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TrainedModel>> TrainedModel::Create(
    const TrainedModelSpec& spec, const BenchmarkDevice& device) {
  std::unique_ptr<TrainedModel> made(new TrainedModel);
  HT_RETURN_IF_ERROR(made->Compile(spec, device));
  HT_RETURN_IF_ERROR(made->MakeBatch(spec.batch));
  made->copy_feeds_ = spec.copy_feeds;
  made->communicator_ = runtime::MakeSingleCommunicator();
  runtime::ExecutorOptions options;
  options.use_graphs = spec.use_graphs;
  options.deterministic = spec.deterministic;
  HT_ASSIGN_OR_RETURN(
      made->executor_,
      runtime::Executor::Create(made->model_.program.get(), device.kernels,
                                device.device.get(), made->communicator_.get(),
                                runtime::TuningTable(), options));
  SymbolValues samples{};
  samples[0] = spec.batch;
  HT_ASSIGN_OR_RETURN(made->binding_,
                      made->executor_->Prepare(kTrainEntry, samples));
  HT_RETURN_IF_ERROR(made->executor_->Initialize(/*seed=*/1));
  return made;
}

absl::Status TrainedModel::Read() {
  HT_ASSIGN_OR_RETURN(const runtime::StepView view,
                      executor_->Read(next_to_read_++));
  loss_ = view.Scalar(kLossSum) / view.Scalar(kCount);
  scale_ = view.Scalar(absl::StrCat(kLossScaling, kNextSuffix));
  rejected_ += view.Scalar(kFoundInf) != 0 ? 1 : 0;
  return absl::OkStatus();
}

absl::StatusOr<double> TrainedModel::Step() {
  if (executed_ - next_to_read_ == 2) HT_RETURN_IF_ERROR(Read());
  const double begin = NowMs();
  implicit_.first_sample = executed_ * batch_->share.global_count;
  const absl::Span<const runtime::FeedData> feeds = feeds_->Point(*batch_);
  fed_.assign(feeds.begin(), feeds.end());
  // The first step's batch stays on the device; the implicit feeds are small.
  for (runtime::FeedData& feed : fed_) {
    feed.kept = executed_ > 0 && !copy_feeds_ && feed.name[0] != '@';
  }
  HT_RETURN_IF_ERROR(executor_->Execute(binding_, fed_).status());
  const double end = NowMs();
  enqueue_us_ = 1000 * (end - begin);
  ++executed_;
  const double took = end - last_enqueued_ms_;
  last_enqueued_ms_ = end;
  return took;
}

absl::Status TrainedModel::Finish() {
  while (next_to_read_ < executed_) HT_RETURN_IF_ERROR(Read());
  return absl::OkStatus();
}

int64_t TrainedModel::standalone_casts() const {
  return std::count_if(
      model_.casts.all().begin(), model_.casts.all().end(),
      [](const proto::CastRow& cast) { return cast.fate() == "standalone"; });
}

}  // namespace halftone
