#include "tools/common/launch_command.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/launch/child_process.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/trainer.h"
#include "tools/common/command_line.h"

namespace halftone {
namespace tools {
namespace {

// Those that are ranks' own.
const std::vector<std::string>& RankVerbs() {
  static const auto* verbs =
      new std::vector<std::string>{"run", "eval", "predict"};
  return *verbs;
}

// Before anything is made for it.
absl::Status CheckCommand(const std::string& word) {
  if (absl::StrContains(word, '/') ||
      runtime::FindProgram(word, runtime::CurrentEnvironment()).ok()) {
    return absl::OkStatus();
  }
  return UsageError("launch: \"", word, "\" is no verb that has ranks (",
                    absl::StrJoin(RankVerbs(), ", "),
                    ") and no command in PATH", NearestHint(word, RankVerbs()));
}

// No word of a command line: those end at their zero.
const std::string& Mark() {
  static const auto* mark = new std::string("\0--", 3);
  return *mark;
}

bool IsSelf(const std::string& program, const std::string& self) {
  if (program == "halftone") return true;  // whichever comes first in PATH
  char full[PATH_MAX];
  return program.find('/') != std::string::npos &&
         realpath(program.c_str(), full) != nullptr && self == full;
}

}  // namespace

bool IsRankVerb(absl::string_view word) {
  return absl::c_linear_search(RankVerbs(), word);
}

absl::StatusOr<std::string> FindSelf() {
  char self[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof(self));
  if (size < 0 || size == sizeof(self)) {
    return UsageError("cannot tell where this binary is (/proc/self/exe)");
  }
  return std::string(self, size);
}

void MarkLaunchedCommand(std::vector<std::string>* words) {
  if (words->empty() || words->front() != "launch") return;
  auto dashes = std::find(words->begin(), words->end(), "--");
  if (dashes != words->end()) *dashes = Mark();
}

absl::Status TakeLaunchedCommand(Verb verb, runtime::LaunchOptions* options) {
  std::vector<std::string>& command = options->command;
  command = verb.command();
  const bool marked = !command.empty() && command.front() == Mark();
  if (marked) command.erase(command.begin());
  // Behind the command's name it is the command's own.
  std::replace(command.begin(), command.end(), Mark(), std::string("--"));
  if (command.empty()) {
    return UsageError(
        "launch: no command; e.g. halftone launch --ranks 2 run mnist.htc "
        "--data idx:models/digits");
  }
  if (!marked && command.front()[0] == '-') {
    return verb.UnknownFlagError(command.front());
  }
  options->self = program_invocation_name;
  HT_ASSIGN_OR_RETURN(const std::string self, FindSelf());
  if (IsRankVerb(command.front())) {
    command.insert(command.begin(), self);
  } else if (command.size() < 2 || !IsRankVerb(command[1]) ||
             !IsSelf(command[0], self)) {
    return options->explain ? absl::OkStatus() : CheckCommand(command.front());
  } else {
    command[0] = self;
  }
  options->own_verb = true;
  options->may_use_out = [](const std::string& out, bool resumes) {
    const runtime::RunDirectory directory(out);
    return resumes ? directory.RefuseIfInUse() : directory.RefuseIfUsed();
  };
  options->readers = runtime::TrainConfig().readers;
  return absl::OkStatus();
}

void AddIgnoredLaunchFlags(Verb verb, std::vector<std::string>* ignored) {
  for (const char* name :
       {"--rdzv-backend", "--rdzv-id", "--rdzv-conf", "--role",
        "--monitor-interval", "--start-method", "--local-addr",
        "--redirects,-r", "--log-line-prefix-template", "--run-mode",
        "--job-id", "--log-level", "--start-port", "--elastic-level",
        "--elastic-timeout"}) {
    const std::string flag =
        std::string(name).substr(0, std::string(name).find(','));
    verb.AddIgnored(
            WithUnderscores(name),
            [ignored, flag] { ignored->push_back(flag); },
            "accepted for torchrun and fleetrun command lines, ignored")
        .Group("Ignored");
  }
  for (const char* name : {"--standalone", "--no-python"}) {
    verb.AddSwitch(
            WithUnderscores(name),
            [ignored, name] { ignored->push_back(name); }, "likewise")
        .Group("Ignored");
  }
}

}  // namespace tools
}  // namespace halftone
