#include "runtime/launch/failure_report.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"
#include "nlohmann/json.hpp"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The number after `key` at the start of a line; -1 if there is none.
int64_t CounterOf(const std::string& text, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int64_t value = 0;
    if (absl::ConsumePrefix(&line, key + " ") &&
        absl::SimpleAtoi(line, &value)) {
      return value;
    }
  }
  return -1;
}

// What any program's exit codes mean by custom; empty: it says nothing.
std::string ShellMeaning(int code) {
  const char* name =
      code > 128 && code < 128 + NSIG ? sigabbrev_np(code - 128) : nullptr;
  return name == nullptr ? "" : absl::StrCat("what shells say for SIG", name);
}

// What the project's exit codes mean, in a few words.
std::string MeaningOf(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kModel:
      return "model or data error";
    case ExitCode::kUsage:
      return "wrong use";
    case ExitCode::kDiffer:
      return "a check failed";
    case ExitCode::kCompilerBug:
      return "a bug in the compiler";
    case ExitCode::kDiverged:
      return "training diverged";
    case ExitCode::kOutOfMemory:
      return "out of memory";
    case ExitCode::kCommunication:
      return "communication failed";
    case ExitCode::kCheckpoint:
      return "checkpoint unreadable or not writable";
    case ExitCode::kDevice:
      return "device or library not there";
    default:
      return ShellMeaning(code);
  }
}

// Colours are for a program's own terminal, and would be quoted as rubbish.
std::string WithoutColors(absl::string_view line) {
  std::string text;
  while (!line.empty()) {
    size_t length = 0;  // of "\033[1;31m"
    if (absl::StartsWith(line, "\033[")) {
      const size_t end = line.find_first_not_of("0123456789;", 2);
      if (end != line.npos && line[end] == 'm') length = end + 1;
    }
    if (length == 0) text.push_back(line[0]);
    line.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

std::string StepText(int64_t step) {
  return step < 0 ? "before its first step" : absl::StrCat("step ", step);
}

// Clocks of nodes and of their file system may differ by this much.
constexpr absl::Duration kClocks = absl::Seconds(2);

// Whether a file is of a failure of this same attempt, by the node whose rank
// it was.
bool KnowsBetter(const std::string& path, const FailureReport& report,
                 MonotonicTime started) {
  // A file's time is one of day, whatever that is.
  const absl::Time since = absl::Now() - (MonotonicTime::Now() - started);
  struct stat info;
  if (stat(path.c_str(), &info) != 0 ||
      absl::TimeFromTimespec(info.st_mtim) + kClocks < since) {
    return false;
  }
  const auto json = nlohmann::json::parse(ReadAll(path), nullptr, false);
  return json.is_object() && json.value("attempt", -1) == report.attempt &&
         json.value("rank", -1) >= 0;
}

// Of a node whose ranks are not to blame. All steps are such that what the
// other node writes meanwhile stays. False: it has written.
absl::StatusOr<bool> WriteUnlessKnownBetter(const std::string& path,
                                            const std::string& text,
                                            const FailureReport& report,
                                            MonotonicTime started) {
  const std::string draft = absl::StrCat(path, ".", getpid(), ".draft");
  const std::string before = absl::StrCat(path, ".", getpid(), ".before");
  if (rename(path.c_str(), before.c_str()) == 0) {
    const bool better = KnowsBetter(before, report, started);
    if (better) Retried([&] { return link(before.c_str(), path.c_str()); });
    unlink(before.c_str());
    if (better) return false;
  }
  HT_RETURN_IF_ERROR(WriteFileAtomically(draft, text));
  const bool linked =
      Retried([&] { return link(draft.c_str(), path.c_str()); }) == 0;
  const int error = errno;
  unlink(draft.c_str());
  if (linked || error == EEXIST) return linked;
  return SystemError(ExitCode::kModel, error,
                     absl::StrCat("cannot write ", path));
}

}  // namespace

int64_t CountOomKills() {
  for (absl::string_view line :
       absl::StrSplit(ReadAll("/proc/self/cgroup"), '\n')) {
    if (!absl::ConsumePrefix(&line, "0::")) continue;
    const int64_t kills = CounterOf(
        ReadAll(absl::StrCat("/sys/fs/cgroup", line, "/memory.events")),
        "oom_kill");
    if (kills >= 0) return kills;
  }
  return std::max<int64_t>(CounterOf(ReadAll("/proc/vmstat"), "oom_kill"), 0);
}

std::string DescribeEnd(int wait_status, int64_t oom_kills, bool is_ours) {
  if (WIFEXITED(wait_status)) {
    const int code = WEXITSTATUS(wait_status);
    const std::string meaning = is_ours ? MeaningOf(code) : ShellMeaning(code);
    return absl::StrCat("exit code ", code, meaning.empty() ? "" : " (",
                        meaning, meaning.empty() ? "" : ")");
  }
  const int number = WTERMSIG(wait_status);
  const char* name = sigabbrev_np(number);
  std::string text = absl::StrCat("signal ", number, " (SIG",
                                  name == nullptr ? "?" : name, ")");
  if (number == SIGKILL && oom_kills > 0) {
    absl::StrAppend(&text, ": the kernel's out-of-memory killer was at work (",
                    oom_kills,
                    " since the start); use a smaller batch or "
                    "fewer ranks");
  } else if (number == SIGKILL) {
    absl::StrAppend(&text, ": killed from outside");
  }
  if (WCOREDUMP(wait_status)) absl::StrAppend(&text, ", core dumped");
  return text;
}

std::optional<int> SourceOfError(const std::deque<std::string>& log_end) {
  std::optional<int> source;
  for (absl::string_view line : log_end) {
    int rank = 0;
    if (absl::ConsumePrefix(&line, "error    rank ") &&
        absl::SimpleAtoi(line.substr(0, line.find(": ")), &rank)) {
      source = rank;
    }
  }
  return source;
}

std::string WhoFailed(const FailureReport& report, int ranks) {
  if (report.rank >= 0) return absl::StrCat("rank ", report.rank);
  if (report.elsewhere.empty()) return "a rank of another node";
  constexpr size_t kMost = 4;
  std::vector<std::string> all, nodes;
  for (const int rank : report.elsewhere) {
    all.push_back(absl::StrCat(rank));
    const std::string node = absl::StrCat(rank / ranks);
    if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
  }
  return absl::StrCat(all.size() == 1 ? "rank " : "ranks ", JoinFew(all, kMost),
                      " on ", nodes.size() == 1 ? "node " : "nodes ",
                      JoinFew(nodes, kMost));
}

std::vector<std::string> ToLines(const FailureReport& report) {
  std::vector<std::string> lines;
  std::string head =
      report.rank < 0
          ? absl::StrCat(report.elsewhere.size() == 1
                             ? absl::StrCat("rank ", report.elsewhere.front())
                             : std::string("the run"),
                         " failed on another node")
          : absl::StrCat("rank ", report.rank, " failed: pid ", report.pid,
                         ", ", report.device);
  if (report.reports_steps) {
    absl::StrAppend(&head, ", ", StepText(report.step));
  }
  absl::StrAppend(&head, ": ", report.cause);
  lines.push_back(head);
  if (!report.activity.empty()) {
    lines.push_back(absl::StrCat("it was in: ", report.activity));
  }
  for (const WaitingRank& waiting : report.waiting) {
    lines.push_back(absl::StrCat(
        "rank ", waiting.rank, " waits for it",
        waiting.step < 0 ? "" : absl::StrCat(", ", StepText(waiting.step)),
        waiting.activity.empty() ? "" : ", in: ", waiting.activity));
  }
  if (!report.run_failure.empty()) {
    lines.push_back(absl::StrCat("the ranks say: ", report.run_failure));
  }
  if (!report.log_end.empty()) {
    lines.push_back(absl::StrCat("end of ", report.log, ":"));
    for (const std::string& line : report.log_end) {
      lines.push_back(absl::StrCat("| ", WithoutColors(line)));
    }
  }
  return lines;
}

absl::StatusOr<bool> WriteFailureFile(const std::string& path,
                                      const FailureReport& report,
                                      MonotonicTime started) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema", 1},
               {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(),
                                         absl::UTCTimeZone())},
               {"attempt", report.attempt},
               {"rank", report.rank},
               {"pid", report.pid},
               {"device", report.device},
               {"step", report.step},
               {"activity", report.activity},
               {"cause", report.cause},
               {"signal", report.signal},
               {"exit_code", report.exit_code},
               {"run_failure", report.run_failure},
               {"log", report.log},
               {"log_end", report.log_end}};
  Json waiting = Json::array();
  for (const WaitingRank& rank : report.waiting) {
    waiting.push_back({{"rank", rank.rank},
                       {"step", rank.step},
                       {"activity", rank.activity}});
  }
  json["waiting"] = waiting;
  // Logs may hold anything: what is not UTF-8 is replaced.
  const std::string text =
      json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (report.rank < 0) {
    return WriteUnlessKnownBetter(path, text, report, started);
  }
  HT_RETURN_IF_ERROR(WriteFileAtomically(path, text));
  return true;
}

}  // namespace runtime
}  // namespace halftone
