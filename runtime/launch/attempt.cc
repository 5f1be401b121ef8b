#include "runtime/launch/attempt.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/retry.h"
#include "graph/base/system/repeated_signal.h"
#include "graph/base/time/monotonic_time.h"

namespace halftone {
namespace runtime {
namespace {

// After the first failure: time for the others to notice and tell what they
// saw, time to end when asked to, and then they are killed. Together well
// within the two seconds that are promised.
constexpr absl::Duration kSettle = absl::Milliseconds(400);
constexpr absl::Duration kTerminate = absl::Milliseconds(900);
// Between looks at what the run's store says, where there are other nodes.
constexpr absl::Duration kNews = absl::Milliseconds(100);
// For a rank here that others blame: it may be about to say why itself.
constexpr absl::Duration kOwnEnd = absl::Milliseconds(500);
// For what is still in the pipes when the ranks are gone.
constexpr absl::Duration kDrain = absl::Milliseconds(300);
// For ranks of other nodes that still talk to the store.
constexpr absl::Duration kFarewell = absl::Seconds(5);

}  // namespace

Attempt::~Attempt() {
  SignalAll(SIGKILL);
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    options_.keeper->Remove(rank.process.pid);
    Retried([&] { return waitpid(rank.process.pid, nullptr, 0); });
  }
}

std::string Attempt::log_dir() const {
  return absl::StrCat(options_.plan->log_dir, "/", kAttemptLogs,
                      options_.plan->first_log_number + options_.attempt);
}

absl::Status Attempt::Open() {
  HT_RETURN_IF_ERROR(MakeDirectories(log_dir()));
  struct stat info;
  if (lstat(log_dir().c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return ModelError(log_dir(), " is a link, which is not followed; choose ",
                      "another --log-dir");
  }
  return StartStore();
}

// A signal that comes meanwhile counts as one to the ranks.
absl::Status Attempt::MeetNodes() {
  if (options_.launch->own_verb) return absl::OkStatus();
  absl::StatusOr<ProgramPlaces> places =
      FindProgramPlaces(*options_.plan, master_, options_.attempt, [this] {
        TakeSignals();
        return user_signal_ != 0;
      });
  if (absl::IsCancelled(places.status())) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(places_, std::move(places));
  return absl::OkStatus();
}

absl::Status Attempt::StartRanks() {
  HT_RETURN_IF_ERROR(MeetNodes());
  if (user_signal_ != 0) return absl::OkStatus();
  if (store_ == nullptr) {
    watch_ =
        absl::make_unique<NodeWatch>(*options_.plan, master_, options_.attempt);
  }
  oom_kills_at_start_ = CountOomKills();
  for (int r = 0; r < options_.plan->ranks; ++r) {
    HT_RETURN_IF_ERROR(StartRank(r));
  }
  return absl::OkStatus();
}

absl::Status Attempt::StartStore() {
  const LaunchPlan& plan = *options_.plan;
  master_ = plan.master;
  if (plan.node_rank > 0) return absl::OkStatus();
  StoreServerOptions server;
  server.host =
      plan.nodes > 1 ? ListenHost(plan.master.host) : plan.master.host;
  server.port = plan.master.port;
  server.world_size = plan.world_size();
  server.token = plan.token;
  server.attempt = options_.attempt;
  HT_ASSIGN_OR_RETURN(store_, StoreServer::Start(server));
  master_.port = store_->address().port;
  if (plan.nodes > 1 && !IsLoopback(plan.master.host) &&
      IsLoopback(store_->address().host)) {
    options_.console->Say(
        true, absl::StrCat("note     ", plan.master.host, " is ",
                           store_->address().host, " on this machine, which ",
                           "others do not reach: name an address that they do "
                           "with --master, or mend /etc/hosts"));
  }
  return absl::OkStatus();
}

absl::Status Attempt::StartRank(int local_rank) {
  const LaunchPlan& plan = *options_.plan;
  const LaunchOptions& launch = *options_.launch;
  Rank rank;
  rank.rank = plan.rank(local_rank);
  HT_ASSIGN_OR_RETURN(rank.status, StatusPage::Create());
  const bool tee = launch.tee_all ||
                   std::find(launch.tee.begin(), launch.tee.end(), rank.rank) !=
                       launch.tee.end();
  using Show = RankOutput::Show;
  const bool plain = local_rank == 0 && plan.node_rank == 0;
  const std::string stem = absl::StrCat(log_dir(), "/rank-", rank.rank);
  HT_ASSIGN_OR_RETURN(rank.out,
                      RankOutput::Open(stem + ".out", rank.rank, false,
                                       plain ? Show::kAll
                                       : tee ? Show::kTee
                                             : Show::kNothing,
                                       options_.console));
  HT_ASSIGN_OR_RETURN(rank.err, RankOutput::Open(stem + ".err", rank.rank, true,
                                                 plain ? Show::kAll
                                                 : tee ? Show::kTee
                                                       : Show::kAlarms,
                                                 options_.console));
  ChildOptions child;
  child.command = options_.command;
  child.env = EnvironmentOf(local_rank, *rank.status);
  child.kept_fd = rank.status->fd();
  HT_ASSIGN_OR_RETURN(rank.process, StartChild(child));
  options_.keeper->Add(rank.process.pid);
  rank.running = true;
  ranks_.push_back(std::move(rank));
  return absl::OkStatus();
}

Environment Attempt::EnvironmentOf(int local_rank,
                                   const StatusPage& status) const {
  Environment env = RankEnvironment(*options_.plan, options_.env, local_rank,
                                    options_.attempt, master_);
  if (!options_.launch->own_verb) {
    AddProgramVariables(*options_.plan, places_, local_rank, options_.attempt,
                        options_.launch->max_restarts, env);
  }
  env[kStatusVariable] = absl::StrCat(status.fd());
  winsize size;
  if (options_.plan->rank(local_rank) == 0 &&
      ioctl(options_.launch->err_fd, TIOCGWINSZ, &size) == 0) {
    env[kColumnsVariable] = absl::StrCat(size.ws_col);
  }
  return env;
}

bool Attempt::Running() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.running; });
}

AttemptResult Attempt::Supervise() {
  while (Running()) {
    PollOnce();
    HearOfOtherNodes(MonotonicTime::Now());
    PassDeadlines(MonotonicTime::Now());
  }
  Drain(kDrain);
  TellOtherNodes();
  // What is said reaches this launcher no sooner than the ranks.
  const bool failed = failed_at_ != MonotonicTime::InfiniteFuture();
  if (watch_ != nullptr && (failed || told_)) {
    (void)watch_->AwaitFailure(3 * kNews);
  }
  AttemptResult result;
  result.stop_signal = StopSignal();
  for (const Rank& rank : ranks_) {
    result.checkpoint = std::max(result.checkpoint, rank.last.checkpoint);
  }
  Conclude(result);
  if (store_ != nullptr && options_.plan->nodes > 1) AwaitFarewells();
  return result;
}

// Of all but those that are to blame: they may be gone without a word.
void Attempt::AwaitFarewells() const {
  const MonotonicTime limit = MonotonicTime::Now() + kFarewell;
  const auto stays = [&](int member) { return !IsSuspect(member); };
  std::vector<int> members = store_->members();
  while (std::any_of(members.begin(), members.end(), stays) &&
         MonotonicTime::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(20));
    members = store_->members();
  }
}

MonotonicTime Attempt::NextDeadline() const {
  if (ending_) return kill_at_;
  const MonotonicTime next = std::min(terminate_at_, kill_at_);
  return options_.plan->nodes == 1 || next != MonotonicTime::InfiniteFuture()
             ? next
             : MonotonicTime::Now() + kNews;
}

void Attempt::PollOnce() {
  std::vector<pollfd> fds = {{options_.signal_fd, POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    fds.push_back({rank.process.out.fd(), POLLIN, 0});
    fds.push_back({rank.process.err.fd(), POLLIN, 0});
  }
  LaunchConsole& console = *options_.console;
  poll(fds.data(), fds.size(),
       PollTimeout(std::min(NextDeadline(), console.due())));
  console.ShowWaiting(MonotonicTime::Now());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    // A closed end has the number -1, which poll passes over.
    if (fds[1 + 2 * i].revents != 0 && !rank.out->Pump(rank.process.out.fd())) {
      rank.process.out.Close();
    }
    if (fds[2 + 2 * i].revents != 0 && !rank.err->Pump(rank.process.err.fd())) {
      rank.process.err.Close();
    }
  }
  if (fds[0].revents != 0) TakeSignals();
}

void Attempt::TakeSignals() {
  signalfd_siginfo info;
  while (read(options_.signal_fd, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) {
      OnUserSignal(static_cast<int>(info.ssi_signo));
    }
  }
  Reap();
}

void Attempt::OnUserSignal(int number) {
  const MonotonicTime now = MonotonicTime::Now();
  const bool first = user_signal_ == 0;
  if (first) {
    user_signal_ = number;
    user_signal_at_ = now;
  } else if (now - user_signal_at_ < absl::Milliseconds(kSameRequestMs)) {
    return;
  }
  options_.console->Message(
      absl::StrCat("SIG", sigabbrev_np(number),
                   first ? ": the ranks finish their step and save; once more "
                           "stops them now"
                         : " again: the ranks are killed"));
  if (!first) ending_ = true;
  SignalAll(first ? number : SIGKILL);
}

void Attempt::Reap() {
  const MonotonicTime now = MonotonicTime::Now();
  bool failed = false;
  for (Rank& rank : ranks_) {
    siginfo_t info = {};
    if (!rank.running ||
        waitid(P_PID, rank.process.pid, &info, WEXITED | WNOHANG | WNOWAIT) !=
            0 ||
        info.si_pid == 0) {
      continue;
    }
    // Its own children do not stay behind. While it is not reaped, its process
    // group's number cannot be another's.
    kill(-rank.process.pid, SIGKILL);
    options_.keeper->Remove(rank.process.pid);
    Retried([&] { return waitpid(rank.process.pid, &rank.wait_status, 0); });
    rank.running = false;
    rank.ended = now;
    rank.ended_by_us = ending_;
    // After a failure, what counts is where it was when that happened.
    if (failed_at_ == MonotonicTime::InfiniteFuture()) {
      rank.last = rank.status->Read();
    }
    failed = failed || (EndedBadly(rank) && !rank.ended_by_us);
  }
  if (failed && failed_at_ == MonotonicTime::InfiniteFuture()) OnFailure(now);
}

void Attempt::OnFailure(MonotonicTime at) {
  failed_at_ = at;
  terminate_at_ = at + kSettle;
  kill_at_ = terminate_at_ + kTerminate;
  // Where the others were when it happened.
  for (Rank& rank : ranks_) {
    if (rank.running) rank.last = rank.status->Read();
  }
}

std::optional<RunFailure> Attempt::RunFailed() const {
  if (store_ != nullptr) return store_->failure();
  return watch_ == nullptr ? std::nullopt : watch_->failure();
}

// Ranks here may be stuck, and say nothing, when one of another node is lost,
// or be those that all others wait for.
void Attempt::HearOfOtherNodes(MonotonicTime now) {
  if (options_.plan->nodes == 1 ||
      failed_at_ != MonotonicTime::InfiniteFuture() || !RunFailed()) {
    return;
  }
  if (heard_at_ == MonotonicTime::InfiniteFuture()) heard_at_ = now;
  // The others have settled while a rank's own word was awaited.
  if (FailedElsewhere() || now >= heard_at_ + kOwnEnd) OnFailure(heard_at_);
}

// The ranks' own word comes first. They may be programs that have none.
void Attempt::TellOtherNodes() {
  if (options_.plan->nodes == 1 || told_) return;
  const Rank* culprit = FindCulprit();
  RunFailure failure;
  if (culprit != nullptr && !SuspectsElsewhere(*culprit).empty()) return;
  if (culprit != nullptr) {
    failure.suspects = {culprit->rank};
    failure.text = absl::StrCat(
        "rank ", culprit->rank, " (pid ", culprit->process.pid, " on node ",
        options_.plan->node_rank, ") failed: ", EndOf(*culprit));
  } else if (user_signal_ != 0 && !options_.launch->own_verb) {
    for (const Rank& rank : ranks_) failure.suspects.push_back(rank.rank);
    failure.text =
        absl::StrCat("node ", options_.plan->node_rank, " was ended by SIG",
                     sigabbrev_np(user_signal_));
  } else {
    return;
  }
  told_ = true;
  if (store_ != nullptr) store_->Fail(failure);
  if (watch_ != nullptr) watch_->Tell(failure);
}

void Attempt::PassDeadlines(MonotonicTime now) {
  if (now >= terminate_at_ && !ending_) {
    TellOtherNodes();
    ending_ = true;
    SignalAll(SIGTERM);
    KillSuspects();
  }
  if (now >= kill_at_) {
    kill_at_ = MonotonicTime::InfiniteFuture();
    SignalAll(SIGKILL);
  }
}

bool Attempt::IsSuspect(int rank) const {
  const std::optional<RunFailure> failure = RunFailed();
  return failure && std::count(failure->suspects.begin(),
                               failure->suspects.end(), rank) > 0;
}

// Whom the others waited for in vain does not hear that it shall end.
void Attempt::KillSuspects() {
  for (const Rank& rank : ranks_) {
    if (rank.running && IsSuspect(rank.rank)) {
      kill(-rank.process.pid, SIGKILL);
    }
  }
}

void Attempt::SignalAll(int number) {
  for (const Rank& rank : ranks_) {
    if (rank.running) kill(-rank.process.pid, number);
  }
}

void Attempt::Drain(absl::Duration limit) {
  const MonotonicTime deadline = MonotonicTime::Now() + limit;
  for (Rank& rank : ranks_) {
    while (rank.out->Pump(rank.process.out.fd()) &&
           MonotonicTime::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    while (rank.err->Pump(rank.process.err.fd()) &&
           MonotonicTime::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    rank.out->Finish();
    rank.err->Finish();
  }
  options_.console->ShowWaiting(MonotonicTime::InfiniteFuture());
}

}  // namespace runtime
}  // namespace halftone
