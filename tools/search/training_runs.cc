#include "tools/search/training_runs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "nlohmann/json.hpp"
#include "runtime/launch/child_process.h"

namespace halftone {
namespace tools {
namespace {

using SortedJson = nlohmann::json;

constexpr char kModel[] = "trial.htc";
constexpr char kRuns[] = "runs";  // 0, 1, ...: each run's own directory
constexpr char kSummary[] = "summary.json";
constexpr char kLog[] = "trial.log";

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

absl::StatusOr<TrialValue> TrainingRuns::ValueOf(const Directory& run) const {
  HT_ASSIGN_OR_RETURN(const std::string summary, run.Read(kSummary));
  const SortedJson json =
      SortedJson::parse(summary, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return ModelError(run.PathOf(kSummary), ": not JSON");
  const SortedJson metrics = json.value("metrics", SortedJson::object());
  const std::string& name = settings_.metric.name;
  SortedJson found;
  if (settings_.metric.kind == Metric::Kind::kLoss) {
    found = json.value("eval_loss", SortedJson());
  } else if (metrics.contains(name)) {
    found = metrics[name].value("value", SortedJson());
    if (found.is_number()) found = 100 * found.get<double>();
  }
  if (found.is_null()) {
    return ModelError(
        "a run of the ", settings_.verb,
        " ends without an eval: the data has no test split; name one with "
        "--eval-data");
  }
  if (!found.is_number() || !std::isfinite(found.get<double>()))
    return TrialValue();
  return TrialValue(found.get<double>());
}

absl::StatusOr<TrialValue> TrainingRuns::Run(const CompiledModel& model,
                                             int64_t seed) const {
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
  if (code == static_cast<int>(ExitCode::kDiverged)) return TrialValue();
  if (code != 0) {
    return MakeError(
        code < 10 ? static_cast<ExitCode>(code) : ExitCode::kModel,
        absl::StrCat("a run of the ", settings_.verb, " ended with code ", code,
                     ": see ", directory_.PathOf(kLog)));
  }
  HT_ASSIGN_OR_RETURN(const Directory run, runs.OpenChild(name));
  // Its last checkpoint, which nobody asked for.
  std::error_code ignored;
  std::filesystem::remove_all(run.PathOf("ckpt"), ignored);
  return ValueOf(run);
}

}  // namespace tools
}  // namespace halftone
