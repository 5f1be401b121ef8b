#include "runtime/report/metrics_log.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "graph/base/json/json_reader.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kMaxPending = 16 << 20;
constexpr absl::string_view kSkipLine = "{\"event\":\"skip\",";
constexpr absl::string_view kScaleLine = "{\"event\":\"scale\",";

std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The shortest decimal that reads back to the same f32; a quoted string for
// nan, inf, -inf.
std::string JsonNumber(float value) {
  const std::string text = ExactFloat(value);
  return std::isfinite(value) ? text : absl::StrCat("\"", text, "\"");
}

absl::string_view Boolean(bool value) { return value ? "true" : "false"; }

std::string Milliseconds(double ms) {
  return JsonNumber(static_cast<float>(ms));
}

std::string MillisecondsJson(const StepTimes& ms, bool parts_known) {
  std::string json = absl::StrCat(
      "{\"step\":", Milliseconds(ms.total), ",\"data\":", Milliseconds(ms.data),
      ",\"fwd_bwd\":", Milliseconds(ms.forward_backward),
      ",\"comm\":", Milliseconds(ms.communicate),
      ",\"update\":", Milliseconds(ms.update),
      ",\"other\":", Milliseconds(parts_known ? ms.other() : 0));
  if (!parts_known) {
    absl::StrAppend(&json, ",\"device\":", Milliseconds(ms.total - ms.data));
  }
  return json + "}";
}

// Finds the outermost object's "step".
class StepOfLine : public JsonVisitor {
 public:
  int64_t step() const { return step_; }

  bool Key(const std::string& key, int depth) override {
    if (depth == 0) at_step_ = key == "step";
    return true;
  }
  bool Integer(int64_t value, int depth) override {
    if (depth == 1 && at_step_) step_ = value;
    return depth > 0;
  }
  bool Text(const std::string&, int depth) override { return Other(depth); }
  bool Other(int depth) override {
    if (depth == 1 && at_step_) step_ = -1;
    return depth > 0;
  }
  bool Begin(bool object, int depth) override {
    return object || (depth > 0 && Other(depth));
  }
  bool End(bool, int) override { return true; }

 private:
  bool at_step_ = false;
  int64_t step_ = -1;
};

// Whatever stands in the line: only an event of ours, of a step up to `step`.
bool IsEventUntil(absl::string_view line, int64_t step) {
  StepOfLine visitor;
  return ReadJson(line, "", visitor).ok() && visitor.step() >= 0 &&
         visitor.step() <= step;
}

// What a line of ours says of the loss scale; none where it is of another
// event, or of a version that did not say so much.
std::optional<ScaleEvent> ScaleEventOf(absl::string_view line) {
  const bool skipped = absl::StartsWith(line, kSkipLine);
  if (!skipped && !absl::StartsWith(line, kScaleLine)) return std::nullopt;
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr,
                                          /*allow_exceptions=*/false);
  ScaleEvent event;
  event.skipped = skipped;
  for (const auto& [name, to] : {std::make_pair("step", &event.step),
                                 std::make_pair("epoch", &event.epoch)}) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    *to = found->get<int64_t>();
  }
  for (const auto& [name, to] :
       {std::make_pair("scale_before", &event.scale_before),
        std::make_pair("loss_scaling", &event.loss_scaling)}) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    *to = found->get<float>();
  }
  const auto first_bad = json.find("first_bad");
  if (first_bad != json.end() && first_bad->is_string()) {
    event.first_bad = first_bad->get<std::string>();
  }
  const auto part = json.find("part");
  if (part != json.end() && part->is_string()) {
    event.part = part->get<std::string>();
  }
  return event;
}

std::string CheckpointLine(int64_t step) {
  return absl::StrCat("{\"event\":\"checkpoint\",\"step\":", step,
                      ",\"epoch\":");
}

// Copies the lines of steps up to `step`, one at a time. A last line without an
// end was being written when the run died.
class Cutter {
 public:
  Cutter(int64_t step, int to, std::string to_path, ScaleRecorder* scale_events)
      : step_(step),
        to_(to),
        to_path_(std::move(to_path)),
        scale_events_(*scale_events) {}

  absl::Status Take(absl::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const absl::string_view part =
          bytes.substr(0, end == bytes.npos ? bytes.size() : end + 1);
      bytes.remove_prefix(part.size());
      // None of ours is as long.
      too_long_ |= line_.size() + part.size() > kMaxPending;
      if (!too_long_) absl::StrAppend(&line_, part);
      if (end == absl::string_view::npos) break;
      if (!too_long_ && IsEventUntil(line_, step_)) Keep();
      line_.clear();
      too_long_ = false;
      if (kept_.size() > kMaxPending) HT_RETURN_IF_ERROR(Flush());
    }
    return absl::OkStatus();
  }
  absl::Status Flush() {
    const absl::Status written = WriteAndSync(to_, to_path_, kept_);
    kept_.clear();
    return written;
  }
  // Whether a line says that the checkpoint of the last step was written.
  bool has_checkpoint() const { return has_checkpoint_; }

 private:
  void Keep() {
    kept_ += line_;
    has_checkpoint_ |= absl::StartsWith(line_, CheckpointLine(step_));
    std::optional<ScaleEvent> event = ScaleEventOf(line_);
    if (event.has_value()) scale_events_.Add(*std::move(event));
  }

  int64_t step_;
  int to_;
  std::string to_path_, line_, kept_;
  ScaleRecorder& scale_events_;
  bool too_long_ = false, has_checkpoint_ = false;
};

absl::Status CutBack(const Directory& directory, const std::string& name,
                     int64_t step, ScaleRecorder* scale_events,
                     bool* has_checkpoint) {
  const std::string temporary = name + ".tmp", path = directory.PathOf(name);
  HT_ASSIGN_OR_RETURN(const Descriptor from, directory.OpenToRead(name));
  HT_ASSIGN_OR_RETURN(const Descriptor to, directory.OpenNew(temporary));
  Cutter cutter(step, to.get(), path, scale_events);
  std::string buffer(1 << 20, '\0');
  while (true) {
    const ssize_t n = read(from.get(), &buffer[0], buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return SystemError(ExitCode::kModel, errno,
                         absl::StrCat(path, ": cannot read"));
    }
    if (n == 0) break;
    HT_RETURN_IF_ERROR(cutter.Take(absl::string_view(buffer.data(), n)));
  }
  HT_RETURN_IF_ERROR(cutter.Flush());
  *has_checkpoint = cutter.has_checkpoint();
  return directory.Rename(temporary, name);
}

// Of a scaler; empty where there is one.
std::string PartJson(const std::string& part) {
  return part.empty() ? "" : absl::StrCat(",\"part\":", Quoted(part));
}

// ,"losses":{"ce":{"loss":0.1,"loss_scaling":1024}}; nothing without parts.
std::string PartsJson(const std::vector<PartLoss>& parts) {
  if (parts.empty()) return "";
  std::string text = ",\"losses\":{";
  for (size_t i = 0; i < parts.size(); ++i) {
    absl::StrAppend(
        &text, i > 0 ? "," : "", Quoted(parts[i].name),
        ":{\"loss\":", JsonNumber(static_cast<float>(parts[i].loss)));
    if (parts[i].loss_scaling.has_value()) {
      absl::StrAppend(&text,
                      ",\"loss_scaling\":", JsonNumber(*parts[i].loss_scaling));
    }
    text += "}";
  }
  return text + "}";
}

// A power of two, or null.
std::string ScaleJson(const std::optional<float>& scale) {
  return scale.has_value() ? JsonNumber(*scale) : "null";
}

std::string ExponentsJson(const ExponentFacts& facts) {
  const ExponentHistogram& h = facts.histogram;
  return absl::StrCat("{\"dtype\":", Quoted(facts.held_in), ",\"bins\":[",
                      absl::StrJoin(h.bins, ","), "],\"zero\":", h.zero,
                      ",\"flushed\":", h.flushed,
                      ",\"overflowed\":", h.overflowed, ",\"nan\":", h.nan,
                      ",\"loss_scaling\":", ScaleJson(facts.loss_scaling),
                      ",\"least_scale\":", ScaleJson(facts.scales.least),
                      ",\"most_scale\":", ScaleJson(facts.scales.most), "}");
}

// ,"fetches":{"w:norm":1,"w":[1,2]}; nothing without any.
std::string FetchesJson(const std::vector<FetchedValue>& fetches) {
  if (fetches.empty()) return "";
  const auto number = [](std::string* out, float value) {
    out->append(JsonNumber(value));
  };
  std::string text = ",\"fetches\":{";
  for (size_t i = 0; i < fetches.size(); ++i) {
    const std::vector<float>& values = fetches[i].values;
    absl::StrAppend(&text, i > 0 ? "," : "", Quoted(fetches[i].name), ":");
    if (fetches[i].exponents.has_value()) {
      text += ExponentsJson(*fetches[i].exponents);
    } else if (values.size() == 1) {
      text += JsonNumber(values[0]);
    } else {
      absl::StrAppend(&text, "[", absl::StrJoin(values, ",", number), "]");
    }
  }
  return text + "}";
}

}  // namespace

MetricsLog::MetricsLog(std::string path, int fd)
    : path_(std::move(path)), fd_(fd) {}

MetricsLog::~MetricsLog() { close(fd_); }

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(
    const std::string& path, int64_t keep_until) {
  std::string name;
  HT_ASSIGN_OR_RETURN(const Directory directory,
                      Directory::OpenParent(path, &name));
  const bool goes_on =
      keep_until >= 0 && directory.KindOf(name) != Directory::Kind::kNothing;
  ScaleRecorder kept;
  bool has_checkpoint = !goes_on;
  HT_RETURN_IF_ERROR(
      goes_on ? CutBack(directory, name, keep_until, &kept, &has_checkpoint)
              : directory.Write(name, ""));
  HT_ASSIGN_OR_RETURN(Descriptor file, directory.OpenToAppend(name));
  auto log = absl::WrapUnique(new MetricsLog(path, file.Release()));
  log->kept_ = std::move(kept);
  log->lacks_checkpoint_ = !has_checkpoint;
  return log;
}

void MetricsLog::Append(absl::string_view line) {
  if (pending_.size() + line.size() > kMaxPending) return;
  absl::StrAppend(&pending_, line, ",\"time\":\"",
                  absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                                   absl::UTCTimeZone()),
                  "\"}\n");
}

absl::Status MetricsLog::Flush() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t n =
        write(fd_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += n;
  }
  pending_.erase(0, done);
  if (pending_.empty()) return absl::OkStatus();
  return SystemError(ExitCode::kModel, errno,
                     absl::StrCat(path_, ": cannot be written"));
}

void MetricsLog::On(const RunStarted& run) {
  parts_known_ = run.parts_known;
  const int64_t step = run.resumed.has_value() ? run.resumed->step : 0;
  // A run that was killed right behind its checkpoint could not say so.
  if (run.resumed.has_value() && lacks_checkpoint_) {
    const bool between = run.resumed->sample == 0;  // epochs
    On(CheckpointEvent{step, run.resumed->epoch - (between ? 1 : 0)});
  }
  const proto::Strategy& strategy = run.strategy;
  Append(absl::StrCat("{\"event\":\"run_start\",\"step\":", step,
                      ",\"resumed\":", Boolean(run.resumed.has_value()),
                      ",\"epochs\":", strategy.train().epochs(),
                      ",\"steps_per_epoch\":", run.steps_per_epoch,
                      ",\"batch_size\":", run.batch, ",\"ranks\":",
                      run.world_size, ",\"data\":", Quoted(run.data),
                      ",\"level\":", Quoted(strategy.amp().level()),
                      ",\"dtype\":", Quoted(strategy.amp().dtype()),
                      ",\"fingerprint\":", Quoted(run.fingerprint)));
}

void MetricsLog::On(const StepEvent& event) {
  Append(absl::StrCat(
      "{\"event\":\"step\",\"step\":", event.step,
      ",\"applied\":", event.applied, ",\"epoch\":", event.epoch,
      ",\"loss\":", JsonNumber(event.loss), ",\"n\":", event.n,
      ",\"skipped\":", event.skipped, ",\"not_finite\":", event.not_finite,
      ",\"lr\":", JsonNumber(event.lr),
      ",\"loss_scaling\":", JsonNumber(event.loss_scaling),
      ",\"good_steps\":", event.good_steps, ",\"bad_steps\":", event.bad_steps,
      ",\"found_inf\":", Boolean(event.found_inf),
      ",\"grad_norm\":", JsonNumber(event.grad_norm),
      FetchesJson(event.fetches), PartsJson(event.parts),
      ",\"ms\":", MillisecondsJson(event.times.per_step, parts_known_)));
}

void MetricsLog::On(const SkipEvent& event) {
  Append(absl::StrCat(kSkipLine, "\"step\":", event.step, ",\"epoch\":",
                      event.epoch, ",\"first_bad\":", Quoted(event.first_bad),
                      ",\"bad_steps\":", event.bad_steps, PartJson(event.part),
                      ",\"scale_before\":", JsonNumber(event.scale_before),
                      ",\"loss_scaling\":", JsonNumber(event.loss_scaling)));
}

void MetricsLog::On(const ScaleEvent& event) {
  if (event.skipped) return;
  Append(absl::StrCat(kScaleLine, "\"step\":", event.step,
                      ",\"epoch\":", event.epoch, PartJson(event.part),
                      ",\"scale_before\":", JsonNumber(event.scale_before),
                      ",\"loss_scaling\":", JsonNumber(event.loss_scaling)));
}

void MetricsLog::On(const NotFiniteEvent& event) {
  Append(absl::StrCat("{\"event\":\"not_finite\",\"step\":", event.step,
                      ",\"epoch\":", event.epoch,
                      ",\"loss\":", JsonNumber(event.loss),
                      ",\"applied\":", Boolean(event.applied),
                      ",\"in_a_row\":", event.in_a_row));
}

void MetricsLog::On(const EvalEvent& event) {
  std::string line = absl::StrCat(
      "{\"event\":\"eval\",\"step\":", event.step, ",\"epoch\":", event.epoch,
      ",\"loss\":", JsonNumber(static_cast<float>(event.loss)),
      ",\"metrics\":{");
  for (size_t i = 0; i < event.metrics.size(); ++i) {
    const MetricValue& metric = event.metrics[i];
    absl::StrAppend(&line, i > 0 ? "," : "", Quoted(metric.name),
                    ":{\"value\":", nlohmann::json(metric.value).dump(),
                    ",\"correct\":", metric.correct,
                    ",\"total\":", metric.total, "}");
  }
  Append(absl::StrCat(line, "}", PartsJson(event.parts)));
}

void MetricsLog::On(const CheckpointEvent& event) {
  Append(absl::StrCat(CheckpointLine(event.step), event.epoch));
}

void MetricsLog::On(const RestartEvent& event) {
  Append(absl::StrCat("{\"event\":\"restart\",\"step\":", event.step,
                      ",\"attempt\":", event.attempt, ",\"rank\":", event.rank,
                      ",\"failed_step\":", event.failed_step,
                      ",\"cause\":", Quoted(event.cause)));
}

void MetricsLog::On(const RunEnded& end) {
  const auto seconds = [](double value) {
    return JsonNumber(static_cast<float>(value));
  };
  Append(absl::StrCat(
      "{\"event\":\"end\",\"step\":", end.step, ",\"applied\":", end.applied,
      ",\"epochs\":", end.epoch, ",\"exit\":", end.exit_code, ",\"signal\":",
      end.signal, ",\"seconds\":{\"run\":", seconds(end.seconds),
      ",\"eval\":", seconds(end.eval_seconds),
      ",\"checkpoint\":", seconds(end.checkpoint_seconds), ",\"fetch\":",
      seconds(end.fetches.has_value() ? end.fetches->seconds : 0), "}"));
}

}  // namespace runtime
}  // namespace halftone
