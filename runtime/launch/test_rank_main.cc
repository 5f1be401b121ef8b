// A rank for the tests of launches: does what its arguments say, each of the
// form
//   [aATTEMPT/]RANK:VERB[=VALUE]        RANK * is every rank
// in order. `test_rank launch RANKS LOGS RESTARTS COMMAND...` is a launcher in
// a process of its own.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/status_page.h"
#include "runtime/rendezvous/environment.h"
#include "runtime/rendezvous/socket.h"
#include "runtime/rendezvous/store_client.h"

namespace halftone {
namespace runtime {
namespace {

volatile sig_atomic_t received = 0;
void OnSignal(int number) { received = number; }

int ToInt(absl::string_view text) {
  int value = 0;
  return absl::SimpleAtoi(text, &value) ? value : 0;
}

// Says in the store that `suspect` is late, as a communicator does.
void ReportLate(const RankPlacement& place, int suspect) {
  StoreClientOptions options;
  options.address = place.master;
  options.rank = place.rank;
  options.world_size = place.world_size;
  options.token = getenv(kTokenVariable);
  auto client =
      StoreClient::Connect(options, MonotonicTime::Now() + absl::Seconds(5));
  if (!client.ok()) _exit(99);
  (void)(*client)->Fail(
      {{suspect}, absl::StrCat("rank ", suspect, " is late")});
  (void)(*client)->Bye();
}

class Actor {
 public:
  Actor(const RankPlacement& place, const Environment& env)
      : place_(place), status_(StatusReporter::FromEnvironment(env)) {}

  void Do(const std::string& verb, const std::string& value) {
    if (verb == "out") std::printf("%s\n", value.c_str());
    if (verb == "err") std::fprintf(stderr, "%s\n", value.c_str());
    if (verb == "part") std::fprintf(stderr, "%s", value.c_str());
    if (verb == "env")
      std::printf("%s=%s\n", value.c_str(), getenv(value.c_str()));
    if (verb == "listen") ListenAtMaster();
    if (verb == "sleep") absl::SleepFor(absl::Milliseconds(ToInt(value)));
    if (verb == "step") status_->SetStep(ToInt(value));
    if (verb == "activity") status_->SetActivity(value);
    if (verb == "checkpoint") status_->SetCheckpoint(ToInt(value));
    if (verb == "late") ReportLate(place_, ToInt(value));
    if (verb == "ignore") signal(ToInt(value), SIG_IGN);
    if (verb == "raise") raise(ToInt(value));
    if (verb == "exit") Exit(ToInt(value));
    if (verb == "finish") Finish();
    if (verb == "child") Child();
    std::fflush(stdout);
  }

 private:
  // As rank 0 of a program of PyTorch does.
  void ListenAtMaster() {
    auto listener = Listen(getenv("MASTER_ADDR"), ToInt(getenv("MASTER_PORT")));
    std::printf("%s\n", listener.ok() ? "listens" : "cannot listen");
  }
  void Exit(int code) {
    std::fflush(stdout);
    _exit(code);
  }
  // Ends as a rank does that is asked to stop.
  void Finish() {
    for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, OnSignal);
    std::printf("ready\n");
    std::fflush(stdout);
    while (received == 0) absl::SleepFor(absl::Milliseconds(5));
    std::printf("saved %d\n", int{received});
    Exit(128 + received);
  }
  // A child of its own that would stay.
  void Child() {
    const pid_t pid = fork();
    if (pid == 0) {
      for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
      absl::SleepFor(absl::Seconds(60));
      _exit(0);
    }
    std::printf("child %d\n", pid);
  }

  RankPlacement place_;
  std::unique_ptr<StatusReporter> status_;
};

int Act(int argc, char** argv) {
  const Environment env = CurrentEnvironment();
  auto place = FindRank(env);
  if (!place.ok()) return 98;
  Actor actor(*place, env);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--resume") actor.Do("out", "resumed");
    const std::vector<std::string> parts =
        absl::StrSplit(word, absl::MaxSplits(':', 1));
    if (parts.size() != 2) continue;
    absl::string_view who = parts[0];
    if (absl::ConsumePrefix(&who, "a")) {
      const std::vector<std::string> when = absl::StrSplit(who, '/');
      if (ToInt(when[0]) != place->attempt) continue;
      who = absl::string_view(parts[0]).substr(parts[0].find('/') + 1);
    }
    if (who != "*" && ToInt(who) != place->rank) continue;
    const std::vector<std::string> what =
        absl::StrSplit(parts[1], absl::MaxSplits('=', 1));
    actor.Do(what[0], what.size() > 1 ? what[1] : "");
  }
  return 0;
}

int RunLauncher(int argc, char** argv) {
  LaunchOptions options;
  options.ranks = argv[2];
  options.log_dir = argv[3];
  options.max_restarts = ToInt(argv[4]);
  options.command.assign(argv + 5, argv + argc);
  auto code = Launch(options);
  if (code.ok()) return *code;
  std::fprintf(stderr, "%s\n", std::string(code.status().message()).c_str());
  return 97;
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

int main(int argc, char** argv) {
  const bool launches = argc > 5 && std::string(argv[1]) == "launch";
  return launches ? halftone::runtime::RunLauncher(argc, argv)
                  : halftone::runtime::Act(argc, argv);
}
