#include "runtime/train/report_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"
#include "runtime/train/bindings.h"
#include "runtime/train/epoch_line.h"
#include "runtime/train/fetches.h"
#include "runtime/train/run_directory.h"

namespace halftone {
namespace runtime {
namespace {

std::string MetricText(const std::string& name, double correct, double total) {
  return absl::StrFormat(
      "%s %.1f %% (%d/%d)", name, total > 0 ? 100 * correct / total : 0,
      static_cast<int64_t>(correct), static_cast<int64_t>(total));
}

std::string MemoryLine(const EndOfRun& end) {
  const Executor& executor = *end.rank->executor;
  std::string line =
      absl::StrCat("memory   peak ", HumanBytes(executor.allocated_bytes()),
                   " per rank, planned ", HumanBytes(executor.planned_bytes()));
  if (end.rank->sampler.world_size > 1) line += "; ranks bitwise equal";
  const std::string& out = end.rank->config().out;
  if (out.empty()) return line;
  absl::StrAppend(&line, "; written: ", out,
                  "/{summary.json,metrics.jsonl,events.out.tfevents.*");
  if (end.checkpoint >= 0) {
    absl::StrAppend(&line, ",ckpt/step-", end.checkpoint);
  }
  return line + "}";
}

// What is not as it was before: why the bits may differ.
std::vector<std::string> Differences(const Rank& rank, const Manifest& was) {
  const TrainConfig& config = rank.config();
  std::vector<std::string> different;
  if (rank.progress.sample % rank.sampler.batch != 0) {
    different.push_back(
        absl::StrCat("another batch size: ",
                     Count(rank.progress.sample % rank.sampler.batch, "sample"),
                     " of this epoch taken twice"));
  }
  if (was.fingerprint != config.fingerprint) {
    different.push_back(was.level == config.strategy.amp().level()
                            ? "another program"
                            : absl::StrCat("another program (",
                                           config.strategy.amp().level(),
                                           " instead of ", was.level, ")"));
  }
  const int64_t seed = config.strategy.train().seed();
  if (was.seed != seed) {
    different.push_back(
        absl::StrCat("another seed (", seed, " instead of ", was.seed, ")"));
  }
  if (was.tuning_hash != rank.executor->tuning().Hash()) {
    different.push_back("not bitwise: another tuning table");
  }
  const auto threads = was.numbers.find(kThreads);
  if (threads != was.numbers.end() && threads->second != rank.threads) {
    different.push_back(
        absl::StrCat("not bitwise: ", Count(rank.threads, "thread"),
                     " per rank instead of ", threads->second));
  }
  if (!config.deterministic) {
    different.push_back("not bitwise: --no-deterministic");
  }
  return different;
}

}  // namespace

std::string SplitText(int64_t samples, int world_size) {
  const std::string all = WithCommas(samples);
  if (world_size == 1) return all;
  const int64_t more = samples % world_size, each = samples / world_size;
  if (each == 0) {
    return absl::StrCat(all, " on ", more, " of ", Count(world_size, "rank"));
  }
  const auto part = [](int64_t times, int64_t count) {
    return times == 1 ? WithCommas(count)
                      : absl::StrCat(times, " x ", WithCommas(count));
  };
  if (more == 0) return absl::StrCat(all, " = ", part(world_size, each));
  return absl::StrCat(all, " = ", part(more, each + 1), " + ",
                      part(world_size - more, each));
}

std::string DataLine(const Rank& rank) {
  const std::vector<int64_t> counts = GlobalCounts(rank.sampler);
  const int world = rank.sampler.world_size;
  const int64_t steps = Sampler(rank.sampler).steps_per_epoch();
  const int64_t epochs = rank.config().strategy.train().epochs();
  std::string line = absl::StrCat(
      "data     ", WithCommas(rank.data().train->size()), " train");
  if (rank.data().test != nullptr) {
    absl::StrAppend(&line, ", ", WithCommas(rank.data().test->size()), " test");
  } else {
    line += ", no test split: nothing is evaluated";
  }
  absl::StrAppend(&line, "; batch ", SplitText(counts[0], world));
  if (counts.size() > 1) {
    absl::StrAppend(&line, ", last of an epoch ", SplitText(counts[1], world));
  }
  absl::StrAppend(&line, "; ", Count(steps, "step"), " x ",
                  Count(epochs, "epoch"), " = ", WithCommas(steps * epochs));
  return line;
}

std::string ResumeLine(const Rank& rank) {
  const Manifest& was = rank.start.state->manifest;
  const Progress& p = rank.progress;
  const int world = rank.sampler.world_size;
  const std::string ranks = Count(world, "rank");
  std::string line =
      absl::StrCat("resume   ckpt/step-", p.step, ": epoch ", p.epoch + 1,
                   " sample ", p.sample, ", ", p.applied, " applied, scale ",
                   ExactFloat(p.loss_scaling), " good ", p.good_steps, "; ");
  const std::vector<std::string> different = Differences(rank, was);
  if (different.empty() && was.world_size == world) {
    return absl::StrCat(line, "same program and ", ranks, ": bit for bit");
  }
  if (different.empty()) {
    return absl::StrCat(line, ranks, ": same samples, equal to rounding");
  }
  return absl::StrCat(line, ranks, "; ", absl::StrJoin(different, "; "));
}

std::string SkipLine(const SkipEvent& event, float scale_before,
                     int64_t bad_limit) {
  std::string line =
      absl::StrCat("step ", event.step, "  skipped: ", event.first_bad, "; ");
  if (event.loss_scaling == scale_before && event.bad_steps == 0 &&
      bad_limit > 0) {
    absl::StrAppend(&line, "bad ", bad_limit, " of ", bad_limit,
                    ", scale stays at its floor ", ExactFloat(scale_before));
  } else if (event.loss_scaling == scale_before) {
    absl::StrAppend(&line, "bad ", event.bad_steps,
                    bad_limit > 0 ? absl::StrCat(" of ", bad_limit) : "",
                    ", scale stays ", ExactFloat(scale_before));
  } else {
    absl::StrAppend(&line, "scale ", ExactFloat(scale_before), " -> ",
                    ExactFloat(event.loss_scaling));
  }
  return line;
}

std::string LossLine(const NotFiniteEvent& event, int64_t limit) {
  return absl::StrCat(
      "step ", event.step, "  warning: the loss is ", ExactFloat(event.loss),
      event.applied ? ", its gradients are finite: applied" : "",
      limit > 0 ? absl::StrCat("; ", event.in_a_row, " of ", limit,
                               " in a row that end the run")
                : "");
}

std::string FetchLine(const StepEvent& event) {
  if (event.fetches.empty()) return "";
  return absl::StrCat(
      "fetch    ",
      absl::StrJoin(
          event.fetches, ", ", [](std::string* out, const auto& fetch) {
            const std::vector<float>& values = fetch.second;
            absl::StrAppend(out, fetch.first, " ");
            if (values.size() == 1) {
              absl::StrAppend(out, ThreeDigits(values[0]));
            } else if (values.size() == 3 + kBins) {  // a histogram
              absl::StrAppend(out, ThreeDigits(values[0]), " .. ",
                              ThreeDigits(values[1]), ", ",
                              ThreeDigits(values[2]), " not finite");
            } else {
              absl::StrAppend(out, "[",
                              absl::StrJoin(values, " ",
                                            [](std::string* to, float value) {
                                              absl::StrAppend(
                                                  to, ThreeDigits(value));
                                            }),
                              "]");
            }
          }));
}

std::string EvalLine(const EvalEvent& event) {
  std::string line = absl::StrCat("eval ", event.epoch, "   ");
  for (const EvalEvent::Metric& m : event.metrics) {
    absl::StrAppend(&line,
                    MetricText(m.name, static_cast<double>(m.correct),
                               static_cast<double>(m.total)),
                    "  ");
  }
  return absl::StrCat(line, "loss ", ThreeDigits(event.loss));
}

std::string MetricsText(const Program& program, const EvalReport& report) {
  std::vector<std::string> texts;
  for (const MetricInfo& info : program.metrics) {
    const auto found = report.metrics.find(info.name);
    if (found == report.metrics.end()) continue;
    texts.push_back(
        MetricText(info.name, found->second.correct, found->second.total));
  }
  if (texts.empty())
    return absl::StrCat("eval loss ", ThreeDigits(report.loss));
  return absl::StrJoin(texts, ", ");
}

bool HasEval(const Rank& rank) {
  const Progress& p = rank.progress;
  if (p.eval_step < 0 || !rank.start.resumed) return p.eval_step >= 0;
  const auto step = rank.start.numbers.find("step");
  const bool earlier = step != rank.start.numbers.end() &&
                       static_cast<double>(p.eval_step) <= step->second;
  // Of the very state that the run ends with it is as true as a new one.
  const bool never = rank.config().eval_every.unit == Cadence::Unit::kNever;
  return !earlier || (p.eval_step == p.step && !never);
}

std::string DoneLine(const EndOfRun& end) {
  const Progress& p = end.rank->progress;
  std::string line = "done     ";
  if (end.signal != 0) {
    absl::StrAppend(&line, "stopped by signal ", end.signal, " in epoch ",
                    p.epoch + 1, ", ");
  } else {
    absl::StrAppend(&line, Count(p.epoch, "epoch"), ", ");
  }
  absl::StrAppend(&line, Count(p.applied, "step"), " applied, ",
                  p.step - p.applied, " skipped, ",
                  Duration(end.times->run.seconds()));
  if (!std::isnan(p.first_loss)) {
    absl::StrAppend(&line, "; loss ", ThreeDigits(p.first_loss), " -> ",
                    ThreeDigits(p.last_loss));
  }
  absl::StrAppend(&line, "; scale ", ExactFloat(p.loss_scaling));
  const Program& program = *end.rank->inputs.program;
  if (p.eval_step == p.step && HasEval(*end.rank)) {
    absl::StrAppend(&line, "; ", MetricsText(program, p.eval));
    if (p.best_step >= 0) {
      absl::StrAppend(&line, ", best at epoch ", p.best_epoch);
    }
  }
  return line;
}

std::string SpeedLine(const EndOfRun& end) {
  const RunTimes& t = *end.times;
  const StepTimes& sum = t.steps.sum();
  std::string line = "speed    ";
  if (t.steps.steps() > 1) {
    absl::StrAppend(&line, Rate(t.steps.samples_per_second()),
                    PerSecond(end.rank->data()), ", step median ",
                    ThreeDigits(t.steps.median_ms()), " ms p95 ",
                    ThreeDigits(t.steps.p95_ms()), ", first ",
                    ThreeDigits(t.steps.first_ms()), " ms left out; ");
  }
  const bool known = KnowsParts(*end.rank);
  const double compute =
      known ? sum.forward_backward + sum.update : sum.total - sum.data;
  const double eval = t.eval_seconds * 1000;
  const double checkpoint = t.checkpoint_seconds * 1000;
  const double counted =
      compute + sum.communicate + sum.data + eval + checkpoint;
  // Whole percents of all that took time, which sum to 100.
  const std::vector<int64_t> shares =
      Apportion(100, {compute, sum.communicate, sum.data, eval, checkpoint,
                      t.run.seconds() * 1000 - counted});
  absl::StrAppend(&line, "time: ", known ? "compute " : "device ", shares[0],
                  " %");
  if (known) absl::StrAppend(&line, ", exposed comm ", shares[1]);
  absl::StrAppend(&line, ", data ", shares[2], ", eval ", shares[3],
                  ", checkpoint ", shares[4], ", other ", shares[5]);
  return line;
}

std::vector<std::string> EndLines(const EndOfRun& end) {
  std::vector<std::string> lines = {DoneLine(end), SpeedLine(end),
                                    MemoryLine(end)};
  if (end.profile != nullptr) {
    for (std::string& line : end.profile->Lines()) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace runtime
}  // namespace halftone
