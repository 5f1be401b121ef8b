#include "runtime/train/run_facts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/schema/op_library.h"

namespace halftone {
namespace runtime {
namespace {

bool HasImages(const RunData& data) {
  for (const FeedSpec& spec : data.specs) {
    if (spec.dtype == DType::kU8 && spec.dims.size() == 3) return true;
  }
  return false;
}

std::string HashOf(const google::protobuf::Message& message) {
  return absl::StrCat("#", Hex64(StableHash(message.SerializeAsString())));
}

// Whether a step updates running statistics of samples that are not those of
// all ranks.
bool NormsRanksApart(const Rank& rank) {
  const proto::Dist& dist = rank.config().strategy.dist();
  if (dist.sync_batch_norm() && dist.sync_batch_norm_group_size() == 0) {
    return false;
  }
  const Program& program = *rank.inputs.program;
  const Entry* const train = program.FindEntry(kTrainEntry);
  for (const CommitStatement& commit : train->commits()) {
    if (program.cell(commit.cell).kind == CellKind::kStatistic) return true;
  }
  return false;
}

std::vector<std::string> ByRanks(const Rank& rank) {
  const proto::Dist& dist = rank.config().strategy.dist();
  std::vector<std::string> said;
  if (NormsRanksApart(rank)) {
    said.push_back(dist.sync_batch_norm()
                       ? "batch norms take the samples of a group of ranks"
                       : "batch norms take each rank's samples "
                         "(dist.sync_batch_norm: all ranks')");
  }
  if (dist.has_localsgd() || dist.has_adaptive_localsgd()) {
    said.push_back("each rank takes steps of its own (dist.localsgd)");
  }
  if (dist.has_dgc()) {
    said.push_back("each rank sends its largest gradients (dist.dgc)");
  }
  if (dist.gradient_mean() == "ranks") {
    said.push_back("a mean of ranks' means (dist.gradient_mean)");
  }
  return said;
}

Resumed ResumedFrom(const Rank& rank) {
  const Manifest& was = rank.start.state->manifest;
  const Progress& progress = rank.progress;
  Resumed resumed;
  resumed.step = progress.step;
  resumed.applied = progress.applied;
  resumed.epoch = progress.epoch + 1;
  resumed.sample = progress.sample;
  resumed.loss_scaling = progress.loss_scaling;
  resumed.good_steps = progress.good_steps;
  resumed.fresh_scale = rank.start.fresh_scale;
  resumed.fingerprint = was.fingerprint;
  resumed.level = was.level;
  resumed.tuning_hash = was.tuning_hash;
  resumed.seed = was.seed;
  const auto threads = was.numbers.find(kThreads);
  if (threads != was.numbers.end()) resumed.threads = threads->second;
  resumed.world_size = was.world_size;
  for (const auto& [key, value] : was.texts) {
    absl::string_view name = key;
    if (absl::ConsumePrefix(&name, kSetting)) {
      resumed.settings[std::string(name)] = value;
    }
  }
  return resumed;
}

}  // namespace

std::map<std::string, std::string> SettingsOf(const Rank& rank) {
  const proto::Strategy& strategy = rank.config().strategy;
  std::map<std::string, std::string> settings = {
      {"batch size", absl::StrCat(rank.sampler.batch)},
      {"number of samples", absl::StrCat(rank.data().train->size())},
      {"set of samples", absl::StrCat("#", Hex64(rank.data().content_hash))},
      {"order of samples", rank.config().shuffle ? "shuffled" : "as stored"},
      {"lr", HashOf(strategy.lr())},
      {"train.tail", strategy.train().tail()},
  };
  if (rank.data().opened.pictures) {
    settings["augmentation"] = HashOf(strategy.train().augment());
  }
  if (!strategy.lr().constant()) {
    settings["number of epochs for lr"] =
        absl::StrCat(strategy.train().epochs());
  }
  for (const OpLibrary* library : LibrariesOf(*rank.inputs.program)) {
    settings[absl::StrCat("op library ", library->name)] =
        absl::StrCat("#", library->hash);
  }
  return settings;
}

int64_t TotalSteps(const Rank& rank) {
  const Progress& progress = rank.progress;
  const int64_t epochs = rank.config().strategy.train().epochs();
  const int64_t to_go =
      Sampler(rank.sampler).steps_per_epoch() * (epochs - progress.epoch) -
      progress.sample / rank.sampler.batch;
  // Those before may have had another batch size.
  return progress.step + std::max<int64_t>(to_go, 0);
}

RunStarted StartOf(const Rank& rank) {
  const TrainConfig& config = rank.config();
  const Device* const device = rank.resources.device;
  RunStarted run;
  run.strategy = config.strategy;
  run.fingerprint = config.fingerprint;
  run.tuning_hash = rank.executor->tuning().Hash();
  run.data = config.data;
  run.out = config.out;
  run.shuffle = config.shuffle;
  run.deterministic = config.deterministic;
  run.world_size = rank.sampler.world_size;
  run.threads = rank.threads;
  run.settings = SettingsOf(rank);
  run.by_ranks = ByRanks(rank);
  run.train_samples = rank.data().train->size();
  if (rank.data().test != nullptr) {
    run.test_samples = rank.data().test->size();
  }
  run.left_out =
      rank.data().opened.left_out + rank.data().opened_for_eval.left_out;
  run.batch = rank.sampler.batch;
  run.step_samples = GlobalCounts(rank.sampler);
  run.steps_per_epoch = Sampler(rank.sampler).steps_per_epoch();
  run.total_steps = TotalSteps(rank);
  run.images = HasImages(rank.data());
  run.parts_known = device == nullptr || !device->asynchronous();
  run.metrics = MetricNames(*rank.inputs.program);
  run.notes = config.notes;
  run.notes.insert(run.notes.end(), rank.start.said.begin(),
                   rank.start.said.end());
  if (rank.start.resumed) run.resumed = ResumedFrom(rank);
  return run;
}

StepEvent StateOf(const StepRecord& record, const RunningLoss& since,
                  const EventTimes& times) {
  StepEvent event;
  event.step = record.step;
  event.applied = record.applied;
  event.epoch = record.epoch;
  event.loss = static_cast<float>(since.mean());
  event.n = static_cast<int64_t>(since.count);
  event.skipped = since.skipped;
  event.not_finite = since.not_finite;
  event.lr = record.lr;
  event.loss_scaling = record.loss_scaling;
  event.good_steps = record.good_steps;
  event.bad_steps = record.bad_steps;
  event.found_inf = record.found_inf;
  event.grad_norm = record.grad_norm;
  event.times = times;
  return event;
}

EvalEvent EvalOf(const EvalReport& report) {
  EvalEvent event;
  event.loss = report.loss;
  for (const auto& [name, loss] : report.parts) {
    event.parts.push_back({name, loss, std::nullopt});
  }
  for (const auto& [name, metric] : report.metrics) {
    event.metrics.push_back(
        {name, metric.total > 0 ? metric.correct / metric.total : 0,
         static_cast<int64_t>(metric.correct),
         static_cast<int64_t>(metric.total)});
  }
  return event;
}

std::vector<std::string> MetricNames(const Program& program) {
  std::vector<std::string> names;
  for (const MetricInfo& info : program.metrics) names.push_back(info.name);
  return names;
}

std::optional<EvalEvent> LastEvalOf(const Rank& rank) {
  const Progress& progress = rank.progress;
  if (progress.eval_step < 0) return std::nullopt;
  if (rank.start.resumed) {
    const auto step = rank.start.numbers.find("step");
    const bool earlier =
        step != rank.start.numbers.end() &&
        static_cast<double>(progress.eval_step) <= step->second;
    // Of the very state that the run ends with it is as true as a new one.
    const bool never = rank.config().eval_every.unit == Cadence::Unit::kNever;
    const bool of_the_end = progress.eval_step == progress.step && !never;
    if (earlier && !of_the_end) return std::nullopt;
  }
  EvalEvent event = EvalOf(progress.eval);
  event.step = progress.eval_step;
  return event;
}

RunEnded EndOf(const Rank& rank, const RunTimes& times,
               const Profile* profile) {
  const Progress& progress = rank.progress;
  const StepClock& steps = times.steps;
  RunEnded end;
  end.step = progress.step;
  end.applied = progress.applied;
  end.epoch = progress.epoch;
  end.first_loss = progress.first_loss;
  end.last_loss = progress.last_loss;
  end.loss_scaling = progress.loss_scaling;
  end.eval = LastEvalOf(rank);
  if (progress.best_step >= 0) end.best_epoch = progress.best_epoch;
  if (steps.steps() > 1) {
    end.speed = {steps.samples_per_second(), steps.median_ms(), steps.p95_ms(),
                 steps.first_ms()};
  }
  end.spent = steps.sum();
  end.seconds = times.run.seconds();
  end.reading_workers = times.reading.workers;
  end.reading_seconds = times.reading.seconds;
  end.samples_read = times.reading.samples;
  end.eval_seconds = times.eval_seconds;
  end.checkpoint_seconds = times.checkpoint_seconds;
  end.peak_bytes = rank.executor->allocated_bytes();
  end.planned_bytes = rank.executor->planned_bytes();
  const Program& program = rank.executor->program();
  end.optimizer_bytes = OptimizerBytes(
      program, LayOutState(program, rank.communicator().world_size()));
  if (profile != nullptr) end.profile = profile->Table();
  return end;
}

}  // namespace runtime
}  // namespace halftone
