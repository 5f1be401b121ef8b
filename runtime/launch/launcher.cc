#include "runtime/launch/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "graph/base/disk/directory.h"
#include "graph/base/disk/directory_lock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/system/system_error.h"
#include "graph/base/time/monotonic_time.h"
#include "nlohmann/json.hpp"
#include "runtime/device/host_info.h"
#include "runtime/launch/attempt.h"
#include "runtime/launch/failure_report.h"
#include "runtime/launch/group_keeper.h"
#include "runtime/launch/launch_plan.h"
#include "runtime/launch/rank_output.h"
#include "runtime/log/words.h"
#include "runtime/rendezvous/restart_cause.h"

namespace halftone {
namespace runtime {
namespace {

// Turns the signals that matter into a file to read, while it lives. To be made
// before any other thread, so that all of them leave the signals alone.
class SignalFile {
 public:
  SignalFile() {
    sigset_t taken;
    sigemptyset(&taken);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
      struct sigaction now;
      // nohup and the like: what is ignored stays ignored.
      if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN &&
          number != SIGCHLD) {
        continue;
      }
      sigaddset(&taken, number);
    }
    pthread_sigmask(SIG_BLOCK, &taken, &before_);
    file_ = Socket(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalFile() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int fd() const { return file_.fd(); }

 private:
  sigset_t before_;
  Socket file_;
};

// While it lives, a pipe whose reader is gone is an error and no death.
class NoBrokenPipes {
 public:
  NoBrokenPipes() : before_(signal(SIGPIPE, SIG_IGN)) {}
  ~NoBrokenPipes() { signal(SIGPIPE, before_); }

 private:
  void (*before_)(int);
};

// The run's secret in a file for whoever starts the other nodes; gone with the
// object.
class TokenFile {
 public:
  ~TokenFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  absl::Status Write(LaunchPlan& plan) {
    const std::string path = absl::StrCat(plan.log_dir, "/token");
    unlink(path.c_str());  // of a launcher that was killed
    const Socket file(open(path.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           0600));
    const std::string text = plan.token + "\n";
    if (!file.open() || write(file.fd(), text.data(), text.size()) !=
                            static_cast<ssize_t>(text.size())) {
      return SystemError(ExitCode::kModel, errno,
                         absl::StrCat("cannot write the run's token to ", path),
                         "choose another --log-dir");
    }
    path_ = path;
    char full[PATH_MAX];
    plan.token_file = realpath(path.c_str(), full) == nullptr ? path : full;
    return absl::OkStatus();
  }

 private:
  std::string path_;
};

std::string DescribeRanks(const LaunchPlan& plan) {
  if (plan.ranks == 1) return absl::StrCat(plan.rank(0));
  std::vector<int> ranks;
  for (int r = 0; r < plan.ranks; ++r) ranks.push_back(plan.rank(r));
  if (plan.ranks > 4) {
    return absl::StrCat("{", ranks.front(), "..", ranks.back(), "}");
  }
  return absl::StrCat("{", absl::StrJoin(ranks, ","), "}");
}

void Announce(const LaunchPlan& plan, const Attempt& attempt,
              LaunchConsole& console) {
  console.Message(absl::StrCat(
      Count(plan.ranks, "rank"),
      plan.nodes == 1
          ? std::string(" on this machine")
          : absl::StrCat(" on node ", plan.node_rank, " of ", plan.nodes),
      " (",
      plan.gpus.empty() ? "cpu"
                        : absl::StrCat("gpu ", absl::StrJoin(plan.gpus, ",")),
      ", ", plan.gpus.empty() ? "gloo " : "", ToString(attempt.master()), "), ",
      Count(plan.omp_threads, "compute thread"),
      plan.readers == 0 ? ""
                        : absl::StrCat(" + ", Count(plan.readers, "reader")),
      " each; logs ", attempt.log_dir(), "/rank-", DescribeRanks(plan),
      ".{out,err}"));
}

void AnnounceOtherNodes(const LaunchOptions& options, const LaunchPlan& plan,
                        LaunchConsole& console) {
  if (plan.nodes == 1 || plan.node_rank > 0) return;
  console.Message("on the other nodes:");
  for (int node = 1; node < plan.nodes; ++node) {
    console.Say(true, absl::StrCat("  ", CommandForNode(options, plan, node)));
  }
  console.Say(
      true,
      plan.token_file.empty()
          ? std::string("  with the same token by the environment or a file")
          : absl::StrCat("  where ", plan.token_file,
                         " (the run's secret, mode 0600) is this node's or a "
                         "copy; --token-file - reads it from standard input"));
}

// Where nobody named a folder for the logs, a new one that is this user's
// alone: names in /tmp that can be guessed belong to whoever is first.
absl::Status MakeLogDirectory(LaunchPlan& plan) {
  if (!plan.log_dir_is_pattern) return MakeDirectories(plan.log_dir);
  if (mkdtemp(&plan.log_dir[0]) == nullptr) {
    return SystemError(ExitCode::kModel, errno,
                       absl::StrCat("cannot make a directory ", plan.log_dir),
                       "set TMPDIR or --log-dir");
  }
  plan.failure_file = FailureFileIn(plan.log_dir);
  return absl::OkStatus();
}

// For one launch alone, until the lock's end. Nodes may share the folder: node
// 0 has it for all.
absl::StatusOr<DirectoryLock> LockLogs(const LaunchPlan& plan) {
  if (plan.node_rank > 0) return DirectoryLock();
  return DirectoryLock::Take(plan.log_dir, absl::Seconds(1),
                             plan.log_dir_is_named ? "--log-dir" : "--out");
}

// The number of this launch's first logs, behind those of earlier ones. Nodes
// that share the folder come to the same: each looks for its own ranks' logs in
// the last one that there is.
int FirstLogNumber(const LaunchPlan& plan) {
  const absl::StatusOr<Directory> logs = Directory::Open(plan.log_dir);
  if (!logs.ok()) return 0;
  int last = -1;
  for (const std::string& name : logs->Names()) {
    absl::string_view number = name;
    int n = 0;
    if (absl::ConsumePrefix(&number, kAttemptLogs) &&
        absl::SimpleAtoi(number, &n) && n < INT_MAX / 2 &&
        logs->KindOf(name) == Directory::Kind::kDirectory) {
      last = std::max(last, n);
    }
  }
  const absl::StatusOr<Directory> newest =
      logs->OpenChild(absl::StrCat(kAttemptLogs, last));
  if (last < 0 || !newest.ok()) return 0;
  for (int r = 0; r < plan.ranks; ++r) {
    for (const char* stream : {".out", ".err"}) {
      if (newest->KindOf(absl::StrCat("rank-", plan.rank(r), stream)) ==
          Directory::Kind::kFile) {
        return last + 1;
      }
    }
  }
  return last;
}

// Beside the run; beside the logs where the ranks made no run directory, or
// where it is another run's, which refused this one.
std::string ChooseFailureFile(const LaunchOptions& options,
                              const LaunchPlan& plan) {
  const bool is_ours = plan.out.empty() ||
                       (access(plan.out.c_str(), F_OK) == 0 &&
                        (plan.node_rank > 0 || options.may_use_out == nullptr ||
                         options.may_use_out(plan.out, /*resumes=*/true).ok()));
  return is_ours ? plan.failure_file : FailureFileIn(plan.log_dir);
}

std::string ExplanationJson(const LaunchOptions& options,
                            const LaunchPlan& plan) {
  using Json = nlohmann::ordered_json;
  const Json json = {
      {"schema", 1},
      {"nodes", plan.nodes},
      {"node_rank", plan.node_rank},
      {"ranks", plan.ranks},
      {"world_size", plan.world_size()},
      {"first_rank", plan.rank(0)},
      {"devices", plan.gpus},
      {"master", plan.master.host},
      {"port", plan.master.port == 0 ? Json() : Json(plan.master.port)},
      {"threads", plan.omp_threads},
      {"readers", plan.readers},
      {"logs", plan.log_dir},
      {"command", options.command},
      {"explanation", plan.explanation}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

void Explain(const LaunchOptions& options, const LaunchPlan& plan,
             LaunchConsole& console) {
  if (options.json) {
    console.Say(false, ExplanationJson(options, plan));
    return;
  }
  for (const std::string& line : plan.explanation) console.Say(false, line);
  console.Say(
      false, absl::StrCat("command     ", absl::StrJoin(options.command, " ")));
}

bool Resumes(const LaunchOptions& options) {
  return !options.own_verb || options.resume_arguments.empty() ||
         std::find(options.command.begin(), options.command.end(),
                   options.resume_arguments[0]) != options.command.end();
}

// The command of a restart: it takes up the last good checkpoint.
std::vector<std::string> ResumeCommand(const LaunchOptions& options) {
  std::vector<std::string> command = options.command;
  if (Resumes(options)) return command;
  command.insert(command.end(), options.resume_arguments.begin(),
                 options.resume_arguments.end());
  return command;
}

// Those that earlier launches left, which are not of a run that succeeds.
void RemoveOldReports(const LaunchPlan& plan) {
  unlink(plan.failure_file.c_str());
  unlink(FailureFileIn(plan.log_dir).c_str());
}

void TellFailure(const LaunchOptions& options, const LaunchPlan& plan,
                 const FailureReport& report, MonotonicTime started,
                 const absl::Status& are_ours, LaunchConsole& console) {
  const std::vector<std::string> lines = ToLines(report);
  console.Say(true, absl::StrCat("error    ", lines[0]));
  for (size_t i = 1; i < lines.size(); ++i) {
    console.Say(true, absl::StrCat("         ", lines[i]));
  }
  if (!are_ours.ok()) {
    console.Say(true, absl::StrCat("warning  no report: ", are_ours.message()));
    return;
  }
  const std::string file = ChooseFailureFile(options, plan);
  const absl::StatusOr<bool> written = WriteFailureFile(file, report, started);
  console.Say(true,
              written.ok()
                  ? absl::StrCat("         report: ", file,
                                 *written ? "" : " (by the other node)")
                  : absl::StrCat("warning  ", written.status().message()));
}

// Why no further attempt is made; empty if one is.
std::string WhyStop(const LaunchOptions& options, const LaunchPlan& plan,
                    const AttemptResult& result, int attempt,
                    const std::vector<FailureReport>& before,
                    const absl::Status& are_ours) {
  if (options.max_restarts == 0) return "no restarts were asked for";
  if (result.stop_signal != 0) return "a signal ended the run";
  if (!are_ours.ok()) {
    return "the run's folder is another now: not restarted";
  }
  if (result.hopeless) {
    return absl::StrCat("exit code ", result.exit_code,
                        " would come again: not restarted");
  }
  const FailureReport& now = *result.failure;
  for (const FailureReport& then : before) {
    if (now.reports_steps && then.reports_steps && then.rank == now.rank &&
        then.elsewhere == now.elsewhere && then.step == now.step) {
      return absl::StrCat(
          WhoFailed(now, plan.ranks),
          now.rank >= 0 ? " failed" : " failed, or did not come back,",
          " twice at ",
          now.step < 0 ? "its start" : absl::StrCat("step ", now.step),
          ": not restarted");
    }
  }
  if (attempt >= options.max_restarts) {
    return absl::StrCat("all restarts are used up (--max-restarts ",
                        options.max_restarts, ")");
  }
  return "";
}

// From where a restart goes on.
std::string RestartText(const LaunchOptions& options,
                        const AttemptResult& result) {
  if (result.checkpoint >= 0) {
    return absl::StrCat(" from the checkpoint of step ", result.checkpoint);
  }
  return options.own_verb ? " from the last good checkpoint"
                          : ": the same command once more";
}

// Attempts until one succeeds or there is a reason to stop.
absl::StatusOr<int> RunAttempts(const LaunchOptions& options,
                                const Environment& env, const LaunchPlan& plan,
                                const DirectoryLock& logs,
                                LaunchConsole& console) {
  const SignalFile signals;
  GroupKeeper keeper;
  std::vector<FailureReport> failures;
  Environment rank_env = env;
  rank_env.erase(kRestartVariable);  // of a launcher around this one
  for (int number = 0;; ++number) {
    AttemptOptions attempt_options;
    attempt_options.plan = &plan;
    attempt_options.launch = &options;
    attempt_options.env = rank_env;
    attempt_options.command =
        number == 0 ? options.command : ResumeCommand(options);
    attempt_options.attempt = number;
    attempt_options.signal_fd = signals.fd();
    attempt_options.console = &console;
    attempt_options.keeper = &keeper;
    const MonotonicTime started = MonotonicTime::Now();
    Attempt attempt(attempt_options);
    HT_RETURN_IF_ERROR(attempt.Open());
    Announce(plan, attempt, console);
    if (number == 0) AnnounceOtherNodes(options, plan, console);
    HT_RETURN_IF_ERROR(attempt.StartRanks());
    const AttemptResult result = attempt.Supervise();
    // The run's folder, in which the logs lie, may have been put away, and its
    // name be another run's: that is not to be told of this, nor gone on with.
    const absl::Status are_ours = logs.Check();
    if (!result.failure) {
      if (result.exit_code == 0 && failures.empty() && are_ours.ok()) {
        RemoveOldReports(plan);
      }
      return result.exit_code;
    }
    TellFailure(options, plan, *result.failure, started, are_ours, console);
    const std::string stop =
        WhyStop(options, plan, result, number, failures, are_ours);
    if (!stop.empty()) {
      if (options.max_restarts > 0) console.Message(stop);
      return result.exit_code;
    }
    failures.push_back(*result.failure);
    const FailureReport& failure = failures.back();
    rank_env[kRestartVariable] = ToText(
        RestartCause{number + 1, failure.rank, failure.step, failure.cause});
    console.Message(absl::StrCat("restart ", number + 1, " of ",
                                 options.max_restarts,
                                 RestartText(options, result)));
  }
}

}  // namespace

absl::StatusOr<int> Launch(const LaunchOptions& options,
                           const Environment& env) {
  HT_ASSIGN_OR_RETURN(
      LaunchPlan plan,
      MakeLaunchPlan(options, env, UsableCores(), OwnAddresses()));
  LaunchConsole console(options.out_fd, options.err_fd);
  if (options.explain) {
    Explain(options, plan, console);
    HT_RETURN_IF_ERROR(console.CheckOut());
    return 0;
  }
  if (options.command.empty()) {
    return UsageError(
        "launch: no command given: halftone launch --ranks 2 "
        "run model.htc ...");
  }
  if (options.may_use_out != nullptr && !plan.out.empty()) {
    HT_RETURN_IF_ERROR(options.may_use_out(plan.out, Resumes(options)));
  }
  const NoBrokenPipes no_broken_pipes;
  HT_RETURN_IF_ERROR(MakeLogDirectory(plan));
  HT_ASSIGN_OR_RETURN(const DirectoryLock logs, LockLogs(plan));
  plan.first_log_number = FirstLogNumber(plan);
  TokenFile token_file;
  if (plan.nodes > 1 && plan.node_rank == 0 && plan.token_is_new) {
    HT_RETURN_IF_ERROR(token_file.Write(plan));
  }
  const absl::StatusOr<int> code =
      RunAttempts(options, env, plan, logs, console);
  if (code.ok() && *code == 0) HT_RETURN_IF_ERROR(console.CheckOut());
  return code;
}

}  // namespace runtime
}  // namespace halftone
