#include "runtime/report/report_text.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"
#include "runtime/report/epoch_line.h"

namespace halftone {
namespace runtime {
namespace {

std::string MetricText(const MetricValue& metric) {
  const auto correct = static_cast<double>(metric.correct);
  const auto total = static_cast<double>(metric.total);
  return absl::StrFormat("%s %.1f %% (%d/%d)", metric.name,
                         total > 0 ? 100 * correct / total : 0, metric.correct,
                         metric.total);
}

// What is not as it was before: why the bits may differ.
std::vector<std::string> Differences(const RunStarted& run,
                                     const Resumed& was) {
  std::vector<std::string> different;
  if (was.sample % run.batch != 0) {
    different.push_back(absl::StrCat(
        "another batch size: ", Count(was.sample % run.batch, "sample"),
        " of this epoch taken twice"));
  }
  if (was.fingerprint != run.fingerprint) {
    const std::string& level = run.strategy.amp().level();
    different.push_back(was.level == level
                            ? "another program"
                            : absl::StrCat("another program (", level,
                                           " instead of ", was.level, ")"));
  }
  const int64_t seed = run.strategy.train().seed();
  if (was.seed != seed) {
    different.push_back(
        absl::StrCat("another seed (", seed, " instead of ", was.seed, ")"));
  }
  if (was.tuning_hash != run.tuning_hash) {
    different.push_back("not bitwise: another tuning table");
  }
  if (was.threads.has_value() && *was.threads != run.threads) {
    different.push_back(
        absl::StrCat("not bitwise: ", Count(run.threads, "thread"),
                     " per rank instead of ", *was.threads));
  }
  for (const auto& [name, value] : run.settings) {
    const auto before = was.settings.find(name);
    if (before == was.settings.end() || before->second == value) continue;
    const std::string another = absl::StrCat("another ", name);
    if (!different.empty() && absl::StartsWith(different[0], another)) continue;
    different.push_back(value[0] == '#'
                            ? another
                            : absl::StrCat(another, " (", value, " instead of ",
                                           before->second, ")"));
  }
  if (!run.deterministic) {
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

std::string DataLine(const RunStarted& run) {
  const auto split = [&run](int64_t samples) {
    const proto::Dist& dist = run.strategy.dist();
    return dist.has_virtual_shards()
               ? absl::StrCat(WithCommas(samples), " in ",
                              Count(dist.virtual_shards(), "virtual shard"))
               : SplitText(samples, run.world_size);
  };
  const int64_t steps = run.steps_per_epoch;
  const int64_t epochs = run.strategy.train().epochs();
  std::string line =
      absl::StrCat("data     ", WithCommas(run.train_samples), " train");
  if (run.test_samples.has_value()) {
    absl::StrAppend(&line, ", ", WithCommas(*run.test_samples), " test");
  } else {
    line += ", no test split: nothing is evaluated";
  }
  absl::StrAppend(&line, "; batch ", split(run.step_samples[0]));
  if (run.step_samples.size() > 1) {
    absl::StrAppend(&line, ", last of an epoch ", split(run.step_samples[1]));
  }
  absl::StrAppend(&line, "; ", Count(steps, "step"), " x ",
                  Count(epochs, "epoch"), " = ", WithCommas(steps * epochs));
  return line;
}

std::string ResumeLine(const RunStarted& run, const Resumed& was) {
  const std::string ranks = Count(run.world_size, "rank");
  std::string line = absl::StrCat(
      "resume   ckpt/step-", was.step, ": epoch ", was.epoch, " sample ",
      was.sample, ", ", was.applied, " applied",
      was.fresh_scale ? ""
                      : absl::StrCat(", scale ", ExactFloat(was.loss_scaling),
                                     " good ", was.good_steps),
      "; ");
  const std::vector<std::string> different = Differences(run, was);
  const proto::Dist& dist = run.strategy.dist();
  if (different.empty() && dist.has_virtual_shards()) {
    return absl::StrCat(line, "same program, ", ranks, ": bit for bit, ",
                        Count(dist.virtual_shards(), "virtual shard"));
  }
  if (different.empty() && was.world_size == run.world_size) {
    return absl::StrCat(line, "same program and ", ranks, ": bit for bit");
  }
  if (different.empty() && run.by_ranks.empty()) {
    return absl::StrCat(line, ranks, ": same samples, equal to rounding");
  }
  if (different.empty()) {
    return absl::StrCat(
        line, ranks, " instead of ", was.world_size,
        ": same samples, other steps: ", absl::StrJoin(run.by_ranks, "; "));
  }
  return absl::StrCat(line, ranks, "; ", absl::StrJoin(different, "; "));
}

std::string SkipLine(const SkipEvent& event, int64_t bad_limit) {
  const float scale_before = event.scale_before;
  const std::string scale =
      event.part.empty() ? "scale" : absl::StrCat("scale of ", event.part);
  std::string line =
      absl::StrCat("step ", event.step, "  skipped: ", event.first_bad, "; ");
  if (event.loss_scaling == scale_before && event.bad_steps == 0 &&
      bad_limit > 0) {
    absl::StrAppend(&line, "bad ", bad_limit, " of ", bad_limit, ", ", scale,
                    " stays at its floor ", ExactFloat(scale_before));
  } else if (event.loss_scaling == scale_before) {
    absl::StrAppend(&line, "bad ", event.bad_steps,
                    bad_limit > 0 ? absl::StrCat(" of ", bad_limit) : "", ", ",
                    scale, " stays ", ExactFloat(scale_before));
  } else {
    absl::StrAppend(&line, scale, " ", ExactFloat(scale_before), " -> ",
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

std::string PartsText(const std::vector<PartLoss>& parts) {
  if (parts.empty()) return "";
  std::vector<std::string> texts;
  for (const PartLoss& part : parts) {
    texts.push_back(absl::StrCat(part.name, " ",
                                 ThreeDigits(static_cast<float>(part.loss))));
  }
  return absl::StrCat(" (", absl::StrJoin(texts, ", "), ")");
}

std::string EvalLine(const EvalEvent& event) {
  std::string line = absl::StrCat("eval ", event.epoch, "   ");
  for (const MetricValue& metric : event.metrics) {
    absl::StrAppend(&line, MetricText(metric), "  ");
  }
  return absl::StrCat(line, "loss ",
                      ThreeDigits(static_cast<float>(event.loss)),
                      PartsText(event.parts));
}

std::string MetricsText(const std::vector<std::string>& order,
                        const EvalEvent& eval) {
  std::vector<std::string> texts;
  for (const std::string& name : order) {
    for (const MetricValue& metric : eval.metrics) {
      if (metric.name == name) texts.push_back(MetricText(metric));
    }
  }
  if (texts.empty()) return absl::StrCat("eval loss ", ThreeDigits(eval.loss));
  return absl::StrJoin(texts, ", ");
}

std::string DoneLine(const RunStarted& run, const RunEnded& end) {
  std::string line = "done     ";
  if (end.signal != 0) {
    absl::StrAppend(&line, "stopped by signal ", end.signal, " in epoch ",
                    end.epoch + 1, ", ");
  } else {
    absl::StrAppend(&line, Count(end.epoch, "epoch"), ", ");
  }
  absl::StrAppend(&line, Count(end.applied, "step"), " applied, ",
                  end.step - end.applied, " skipped, ", Duration(end.seconds));
  if (!std::isnan(end.first_loss)) {
    absl::StrAppend(&line, "; loss ", ThreeDigits(end.first_loss), " -> ",
                    ThreeDigits(end.last_loss));
  }
  absl::StrAppend(&line, "; scale ", ExactFloat(end.loss_scaling));
  if (end.eval.has_value() && end.eval->step == end.step) {
    absl::StrAppend(&line, "; ", MetricsText(run.metrics, *end.eval));
    if (end.best_epoch.has_value()) {
      absl::StrAppend(&line, ", best at epoch ", *end.best_epoch);
    }
  }
  return line;
}

std::string SpeedLine(const RunStarted& run, const RunEnded& end) {
  const StepTimes& sum = end.spent;
  std::string line = "speed    ";
  if (end.speed.has_value()) {
    const StepSpeed& speed = *end.speed;
    absl::StrAppend(&line, SamplesRate(run.images, speed.samples_per_second),
                    ", step median ", ThreeDigits(speed.median_ms), " ms p95 ",
                    ThreeDigits(speed.p95_ms), ", first ",
                    ThreeDigits(speed.first_ms), " ms left out; ");
  }
  const bool known = run.parts_known;
  const double compute =
      known ? sum.forward_backward + sum.update : sum.total - sum.data;
  const double eval = end.eval_seconds * 1000;
  const double checkpoint = end.checkpoint_seconds * 1000;
  const double counted =
      compute + sum.communicate + sum.data + eval + checkpoint;
  // Of a run that was taken up with nothing to do.
  if (!end.speed.has_value() && counted == 0) return "";
  // Whole percents of all that took time, which sum to 100.
  const std::vector<int64_t> shares =
      Apportion(100, {compute, sum.communicate, sum.data, eval, checkpoint,
                      end.seconds * 1000 - counted});
  absl::StrAppend(&line, "time: ", known ? "compute " : "device ", shares[0],
                  " %");
  if (known) absl::StrAppend(&line, ", exposed comm ", shares[1]);
  absl::StrAppend(&line, ", data ", shares[2], ", eval ", shares[3],
                  ", checkpoint ", shares[4], ", other ", shares[5]);
  return line;
}

std::string ReadingLine(const RunStarted& run, const RunEnded& end) {
  std::vector<std::string> facts;
  if (end.reading_seconds > 0.01 * end.seconds) {
    const double rate =
        static_cast<double>(end.samples_read) / end.reading_seconds;
    facts.push_back(absl::StrCat("read at ", SamplesRate(run.images, rate),
                                 " per worker, ",
                                 Count(end.reading_workers, "worker")));
  }
  if (run.left_out > 0) {
    facts.push_back(
        absl::StrCat(Count(run.left_out, "broken sample"), " left out"));
  }
  return facts.empty() ? ""
                       : absl::StrCat("data     ", absl::StrJoin(facts, "; "));
}

std::string MemoryLine(const RunStarted& run, const RunEnded& end,
                       int64_t checkpoint, bool has_summary) {
  std::string line =
      absl::StrCat("memory   peak ", HumanBytes(end.peak_bytes),
                   " per rank, planned ", HumanBytes(end.planned_bytes));
  if (run.world_size > 1) line += "; ranks bitwise equal";
  if (run.out.empty()) return line;
  absl::StrAppend(&line, "; written: ", run.out, "/{",
                  has_summary ? "summary.json," : "",
                  "metrics.jsonl,events.out.tfevents.*");
  if (checkpoint >= 0) absl::StrAppend(&line, ",ckpt/step-", checkpoint);
  return line + "}";
}

}  // namespace runtime
}  // namespace halftone
