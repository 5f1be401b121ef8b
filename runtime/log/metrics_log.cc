#include "runtime/log/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/retry.h"
#include "graph/base/text.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kMaxPending = 16 << 20;

std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::string_view Boolean(bool value) { return value ? "true" : "false"; }

// The lines of steps up to `step`. A last line without an end was being
// written when the run died.
std::string LinesUntil(absl::string_view content, int64_t step) {
  std::string kept;
  size_t begin = 0;
  for (size_t end; (end = content.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const absl::string_view line = content.substr(begin, end + 1 - begin);
    const nlohmann::json event =
        nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    if (event.is_object() && event.value("step", int64_t{-1}) >= 0 &&
        event["step"] <= step) {
      absl::StrAppend(&kept, line);
    }
  }
  return kept;
}

}  // namespace

std::string JsonNumber(float value) {
  const std::string text = ExactFloat(value);
  return std::isfinite(value) ? text : absl::StrCat("\"", text, "\"");
}

MetricsLog::MetricsLog(std::string path, int fd)
    : path_(std::move(path)), fd_(fd) {}

MetricsLog::~MetricsLog() { close(fd_); }

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(
    const std::string& path, int64_t keep_until) {
  std::string kept;
  if (keep_until >= 0 && access(path.c_str(), F_OK) == 0) {
    HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
    kept = LinesUntil(content, keep_until);
  }
  HT_RETURN_IF_ERROR(WriteFileAtomically(path, kept));
  const int fd = Retried(
      [&] { return open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC); });
  if (fd < 0) {
    return ModelError(path, ": cannot be written: ", std::strerror(errno));
  }
  return absl::WrapUnique(new MetricsLog(path, fd));
}

absl::Status MetricsLog::Append(const std::string& line) {
  if (pending_.size() + line.size() <= kMaxPending) pending_ += line;
  return Flush();
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
  return ModelError(path_, ": cannot be written: ", std::strerror(errno));
}

absl::Status MetricsLog::Write(const StepEvent& event) {
  std::string line = absl::StrCat(
      "{\"event\":\"step\",\"step\":", event.step,
      ",\"applied\":", event.applied, ",\"epoch\":", event.epoch,
      ",\"loss\":", JsonNumber(event.loss), ",\"n\":", event.n,
      ",\"skipped\":", event.skipped, ",\"not_finite\":", event.not_finite,
      ",\"lr\":", JsonNumber(event.lr),
      ",\"loss_scaling\":", JsonNumber(event.loss_scaling),
      ",\"good_steps\":", event.good_steps, ",\"bad_steps\":", event.bad_steps,
      ",\"found_inf\":", Boolean(event.found_inf),
      ",\"grad_norm\":", JsonNumber(event.grad_norm));
  if (!event.fetches.empty()) line += ",\"fetches\":{";
  for (size_t i = 0; i < event.fetches.size(); ++i) {
    const auto& [name, values] = event.fetches[i];
    absl::StrAppend(&line, i > 0 ? "," : "", Quoted(name), ":");
    const auto number = [](std::string* out, float value) {
      out->append(JsonNumber(value));
    };
    absl::StrAppend(
        &line,
        values.size() == 1
            ? JsonNumber(values[0])
            : absl::StrCat("[", absl::StrJoin(values, ",", number), "]"));
  }
  if (!event.fetches.empty()) line += "}";
  absl::StrAppend(
      &line, ",\"ms\":{",
      absl::StrJoin(event.ms, ",",
                    [](std::string* out, const auto& part) {
                      absl::StrAppend(
                          out, Quoted(part.first), ":",
                          JsonNumber(static_cast<float>(part.second)));
                    }),
      "}}\n");
  return Append(line);
}

absl::Status MetricsLog::Write(const SkipEvent& event) {
  return Append(absl::StrCat(
      "{\"event\":\"skip\",\"step\":", event.step, ",\"epoch\":", event.epoch,
      ",\"first_bad\":", Quoted(event.first_bad),
      ",\"bad_steps\":", event.bad_steps,
      ",\"loss_scaling\":", JsonNumber(event.loss_scaling), "}\n"));
}

absl::Status MetricsLog::Write(const NotFiniteEvent& event) {
  return Append(absl::StrCat("{\"event\":\"not_finite\",\"step\":", event.step,
                             ",\"epoch\":", event.epoch,
                             ",\"loss\":", JsonNumber(event.loss),
                             ",\"applied\":", Boolean(event.applied),
                             ",\"in_a_row\":", event.in_a_row, "}\n"));
}

absl::Status MetricsLog::Write(const EvalEvent& event) {
  std::string line = absl::StrCat(
      "{\"event\":\"eval\",\"step\":", event.step, ",\"epoch\":", event.epoch,
      ",\"loss\":", JsonNumber(event.loss), ",\"metrics\":{");
  for (size_t i = 0; i < event.metrics.size(); ++i) {
    const EvalEvent::Metric& metric = event.metrics[i];
    absl::StrAppend(&line, i > 0 ? "," : "", Quoted(metric.name),
                    ":{\"value\":", nlohmann::json(metric.value).dump(),
                    ",\"correct\":", metric.correct,
                    ",\"total\":", metric.total, "}");
  }
  return Append(line + "}}\n");
}

}  // namespace runtime
}  // namespace halftone
