// One run of all ranks of this node, from start to the last one's end.
#ifndef HALFTONE_RUNTIME_LAUNCH_ATTEMPT_H_
#define HALFTONE_RUNTIME_LAUNCH_ATTEMPT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/launch/child_process.h"
#include "runtime/launch/failure_report.h"
#include "runtime/launch/group_keeper.h"
#include "runtime/launch/launch_plan.h"
#include "runtime/launch/node_watch.h"
#include "runtime/launch/program_places.h"
#include "runtime/launch/rank_output.h"
#include "runtime/launch/status_page.h"
#include "runtime/rendezvous/store_server.h"

namespace halftone {
namespace runtime {

struct AttemptOptions {
  const LaunchPlan* plan = nullptr;
  const LaunchOptions* launch = nullptr;
  Environment env;
  std::vector<std::string> command;
  int attempt = 0;
  int signal_fd = -1;  // a signalfd for SIGINT, SIGTERM, SIGHUP, SIGCHLD
  LaunchConsole* console = nullptr;
  GroupKeeper* keeper = nullptr;
};

struct AttemptResult {
  int exit_code = 0;
  int stop_signal = 0;  // that ended the run, else 0
  // Whoever failed first; nothing if all went well or a signal ended the run.
  std::optional<FailureReport> failure;
  // Step of the last good checkpoint that a rank told of; -1: none.
  int64_t checkpoint = -1;
  // The failing rank speaks our protocol and gave an exit code that a second
  // try would give again.
  bool hopeless = false;
};

class Attempt {
 public:
  explicit Attempt(const AttemptOptions& options) : options_(options) {}
  ~Attempt();  // kills what is left

  // The store and the folder for logs.
  absl::Status Open();
  // Where the ranks meet; after Open.
  HostPort master() const { return master_; }
  // An error leaves nothing behind. Without an error but with a signal while
  // the nodes came together, nothing is started.
  absl::Status StartRanks();
  std::string log_dir() const;
  // Until all ranks are gone.
  AttemptResult Supervise();

 private:
  struct Rank {
    int rank = 0;
    ChildProcess process;
    std::unique_ptr<StatusPage> status;
    std::unique_ptr<RankOutput> out;
    std::unique_ptr<RankOutput> err;
    bool running = false;
    int wait_status = 0;
    MonotonicTime ended;
    bool ended_by_us = false;  // we had sent it a signal
    RankStatus last;           // when it ended, or when somebody failed
  };

  absl::Status StartStore();
  absl::Status MeetNodes();
  absl::Status StartRank(int local_rank);
  bool Running() const;
  void PollOnce();
  MonotonicTime NextDeadline() const;
  void TakeSignals();
  void OnUserSignal(int number);
  void Reap();
  void OnFailure(MonotonicTime at);
  void HearOfOtherNodes(MonotonicTime now);
  void TellOtherNodes();
  void PassDeadlines(MonotonicTime now);
  bool IsSuspect(int rank) const;
  void KillSuspects();
  void SignalAll(int number);
  Environment EnvironmentOf(int local_rank, const StatusPage& status) const;
  void Drain(absl::Duration limit);
  void AwaitFarewells() const;

  int StopSignal() const;
  bool EndedBadly(const Rank& rank) const;
  const Rank* FindCulprit() const;
  std::optional<int> SourceOf(const Rank& rank) const;
  bool IsHere(int rank) const;
  std::vector<int> SuspectsElsewhere(const Rank& culprit) const;
  const Rank* FindHungRank() const;
  std::string EndOf(const Rank& rank) const;
  const Rank* FindStuckRank() const;
  std::optional<RunFailure> RunFailed() const;
  bool FailedElsewhere() const;
  FailureReport Report(const Rank& culprit) const;
  void Conclude(AttemptResult& result) const;

  const AttemptOptions options_;
  std::unique_ptr<StoreServer> store_;  // on node 0
  std::unique_ptr<NodeWatch> watch_;    // on others
  HostPort master_;
  ProgramPlaces places_;  // where the command is not ours
  std::vector<Rank> ranks_;
  int user_signal_ = 0;
  MonotonicTime user_signal_at_;  // the first
  bool ending_ = false;           // we have told the ranks to end
  int64_t oom_kills_at_start_ = 0;
  bool told_ = false;  // other nodes, of a failure here
  MonotonicTime heard_at_ = MonotonicTime::InfiniteFuture();  // of a failure
  MonotonicTime failed_at_ = MonotonicTime::InfiniteFuture();
  MonotonicTime terminate_at_ = MonotonicTime::InfiniteFuture();
  MonotonicTime kill_at_ = MonotonicTime::InfiniteFuture();
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_ATTEMPT_H_
