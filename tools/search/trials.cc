#include "tools/search/trials.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "nlohmann/json.hpp"
#include "runtime/launch/child_process.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::json;

constexpr char kQuestion[] = "search.json";
constexpr char kResults[] = "results.jsonl";
constexpr char kModel[] = "trial.htc";
constexpr char kRuns[] = "runs";  // 0, 1, ...: each run's own directory
constexpr char kSummary[] = "summary.json";
constexpr char kLog[] = "trial.log";

std::string QuestionJson(const std::map<std::string, std::string>& question) {
  Json json = {{"schema", 1}};
  for (const auto& [name, value] : question) json[name] = value;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status CheckSame(const Directory& directory, const std::string& found,
                       const std::map<std::string, std::string>& question) {
  const Json there = Json::parse(found, nullptr, /*allow_exceptions=*/false);
  if (!there.is_object()) {
    return ModelError(directory.PathOf(kQuestion),
                      ": not what a search wrote; choose another --out");
  }
  const Json asked = Json::parse(QuestionJson(question));
  for (const auto& [name, value] : asked.items()) {
    if (there.contains(name) && there[name] == value) continue;
    return UsageError(
        directory.path(), " holds results of a search with another ", name,
        " (", there.contains(name) ? there[name].dump() : "none", ", now ",
        value.dump(), "); choose another --out or remove it");
  }
  return absl::OkStatus();
}

// Appends what the child writes to the file until it has closed both ends.
void KeepOutput(const runtime::ChildProcess& child, int file) {
  pollfd ends[] = {{child.out.fd(), POLLIN, 0}, {child.err.fd(), POLLIN, 0}};
  char buffer[16384];
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (poll(ends, 2, -1) < 0) continue;  // EINTR
    for (pollfd& end : ends) {
      if (end.fd < 0 || end.revents == 0) continue;
      const ssize_t size = read(end.fd, buffer, sizeof(buffer));
      if (size > 0) {
        // A log that cannot be written is missed, nothing else.
        if (write(file, buffer, size) < 0) continue;
      } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        end.fd = -1;
      }
    }
  }
}

}  // namespace

std::string Metric::Text(double value) const {
  return absl::StrFormat(lower_is_better() ? "%.4g" : "%.4g %%", value);
}

absl::StatusOr<Trials> Trials::Open(
    Settings settings, const std::map<std::string, std::string>& question) {
  HT_ASSIGN_OR_RETURN(DirectoryLock lock,
                      DirectoryLock::Take(settings.directory));
  HT_ASSIGN_OR_RETURN(Directory directory, Directory::Open(settings.directory));
  if (directory.KindOf(kQuestion) == Directory::Kind::kNothing) {
    for (const std::string& name : directory.Names()) {
      if (name == DirectoryLock::kFile) continue;
      return UsageError(settings.directory, " holds ", name,
                        ", which no search wrote; choose another --out");
    }
    HT_RETURN_IF_ERROR(directory.Write(kQuestion, QuestionJson(question)));
  } else {
    HT_ASSIGN_OR_RETURN(const std::string found, directory.Read(kQuestion));
    HT_RETURN_IF_ERROR(CheckSame(directory, found, question));
  }
  Trials trials(std::move(settings), std::move(lock), std::move(directory));
  HT_RETURN_IF_ERROR(trials.ReadResults());
  return trials;
}

// A last line that was cut off by the end of its writer is no result.
absl::Status Trials::ReadResults() {
  if (directory_.KindOf(kResults) == Directory::Kind::kNothing) {
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(std::string content, directory_.Read(kResults));
  const size_t whole = content.rfind('\n') + 1;
  if (whole != content.size()) {
    content.resize(whole);
    HT_RETURN_IF_ERROR(directory_.Write(kResults, content));
  }
  int number = 0;
  for (absl::string_view line :
       absl::StrSplit(content, '\n', absl::SkipEmpty())) {
    ++number;
    const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object() || !row.contains("trial") ||
        !row["trial"].is_string() || !row.contains("value") ||
        !(row["value"].is_null() || row["value"].is_number())) {
      return ModelError(directory_.PathOf(kResults), ":", number,
                        ": not a result of a search; remove the line, and its "
                        "run is made again");
    }
    const Json& value = row["value"];
    results_[row["trial"].get<std::string>()] =
        value.is_null() ? Value() : Value(value.get<double>());
  }
  return absl::OkStatus();
}

absl::Status Trials::Keep(const std::string& key, Value value) {
  results_[key] = value;
  const Json row = {{"trial", key},
                    {"value", value.has_value() ? Json(*value) : Json()}};
  const std::string line = row.dump() + "\n";
  if (directory_.KindOf(kResults) == Directory::Kind::kNothing) {
    return directory_.Write(kResults, line);
  }
  HT_ASSIGN_OR_RETURN(const Descriptor file, directory_.OpenToAppend(kResults));
  return WriteAndSync(file.get(), directory_.PathOf(kResults), line);
}

absl::StatusOr<Trials::Value> Trials::ValueOf(const Directory& run) const {
  HT_ASSIGN_OR_RETURN(const std::string summary, run.Read(kSummary));
  const Json json = Json::parse(summary, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return ModelError(run.PathOf(kSummary), ": not JSON");
  const Json metrics = json.value("metrics", Json::object());
  const std::string& name = settings_.metric.name;
  Json found;
  if (settings_.metric.lower_is_better()) {
    found = json.value("eval_loss", Json());
  } else if (metrics.contains(name)) {
    found = metrics[name].value("value", Json());
    if (found.is_number()) found = 100 * found.get<double>();
  }
  if (found.is_null()) {
    return ModelError(
        "a run of the search ends without an eval: the data has "
        "no test split; name one with --eval-data");
  }
  if (!found.is_number() || !std::isfinite(found.get<double>())) return Value();
  return Value(found.get<double>());
}

absl::StatusOr<Trials::Value> Trials::Run(const CompiledModel& model,
                                          int64_t seed) {
  HT_ASSIGN_OR_RETURN(const std::string bytes, SerializeCompiledModel(model));
  HT_RETURN_IF_ERROR(directory_.Write(kModel, bytes));
  HT_ASSIGN_OR_RETURN(const Directory runs, directory_.MakeChild(kRuns));
  // One that was stopped keeps its directory.
  const std::string name = absl::StrCat(runs.Names().size());
  runtime::ChildOptions options;
  options.env = runtime::CurrentEnvironment();
  options.command = {settings_.self,
                     "run",
                     directory_.PathOf(kModel),
                     "--out",
                     runs.PathOf(name),
                     "--checkpoint-every",
                     "never",
                     "--set",
                     absl::StrCat("train.seed=", seed)};
  options.command.insert(options.command.end(), settings_.words.begin(),
                         settings_.words.end());
  HT_ASSIGN_OR_RETURN(const Descriptor log, directory_.OpenNew(kLog));
  HT_ASSIGN_OR_RETURN(const runtime::ChildProcess child,
                      runtime::StartChild(options));
  KeepOutput(child, log.get());
  int status = 0;
  Retried([&] { return waitpid(child.pid, &status, 0); });
  const int code = runtime::ExitCodeOfWait(status);
  if (code == static_cast<int>(ExitCode::kDiverged)) return Value();
  if (code != 0) {
    return MakeError(code < 10 ? static_cast<ExitCode>(code) : ExitCode::kModel,
                     absl::StrCat("a run of the search ended with code ", code,
                                  ": see ", directory_.PathOf(kLog)));
  }
  HT_ASSIGN_OR_RETURN(const Directory run, runs.OpenChild(name));
  // Its last checkpoint, which nobody asked for.
  std::error_code ignored;
  std::filesystem::remove_all(run.PathOf("ckpt"), ignored);
  return ValueOf(run);
}

absl::StatusOr<std::optional<double>> Trials::Measure(
    const CompiledModel& model, const std::string& what) {
  ++programs_;
  std::vector<std::string> shown;
  double sum = 0;
  bool diverged = false, ran = false;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < settings_.runs; ++i) {
    const int64_t seed = model.strategy.train().seed() + i;
    const std::string key = absl::StrCat(model.fingerprint, " seed ", seed);
    if (results_.find(key) == results_.end()) {
      HT_ASSIGN_OR_RETURN(const Value value, Run(model, seed));
      HT_RETURN_IF_ERROR(Keep(key, value));
      ++made_;
      ran = true;
    }
    const Value value = results_[key];
    shown.push_back(value.has_value() ? settings_.metric.Text(*value)
                                      : "diverged");
    sum += value.value_or(0);
    diverged |= !value.has_value();
    if (diverged) break;  // the others change nothing
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  settings_.say(absl::StrFormat(
      "trial %-3d %-40s %s %s%s", programs_, what, settings_.metric.name,
      absl::StrJoin(shown, ", "),
      ran ? absl::StrFormat("  (%.1f s)", seconds) : "  (known)"));
  if (diverged) return std::optional<double>();
  return std::optional<double>(sum / settings_.runs);
}

}  // namespace tools
}  // namespace halftone
