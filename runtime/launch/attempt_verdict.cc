// Which ranks failed, whose failure it was, and what is said of it.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/launch/attempt.h"

namespace halftone {
namespace runtime {
namespace {

// Codes that another try would give again: wrong input or use, a bug, a
// training that diverged, no device.
bool IsHopeless(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kModel:
    case ExitCode::kUsage:
    case ExitCode::kDiffer:
    case ExitCode::kCompilerBug:
    case ExitCode::kDiverged:
    case ExitCode::kDevice:
      return true;
    default:
      return false;
  }
}

constexpr int kCommunicationCode = static_cast<int>(ExitCode::kCommunication);

}  // namespace

// The signal that asks for the run's end: the one that came here; else, where
// another launcher or a rank got it, the one after which a rank of our own has
// ended by itself. 0: none.
int Attempt::StopSignal() const {
  if (user_signal_ != 0 || !options_.launch->own_verb) return user_signal_;
  for (const Rank& rank : ranks_) {
    if (rank.running || rank.ended_by_us || !WIFEXITED(rank.wait_status)) {
      continue;
    }
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      if (WEXITSTATUS(rank.wait_status) == 128 + number) return number;
    }
  }
  return 0;
}

// A rank that ends as a signal asks has not failed, nor has one that then
// misses its peers. One that a signal killed has, unless the signal was ours.
bool Attempt::EndedBadly(const Rank& rank) const {
  const int code = ExitCodeOfWait(rank.wait_status);
  if (code == 0) return false;
  const int asked = StopSignal();
  if (asked == 0 || (user_signal_ == 0 && WIFSIGNALED(rank.wait_status))) {
    return true;
  }
  return code != 128 + asked && code != kCommunicationCode;
}

std::string Attempt::EndOf(const Rank& rank) const {
  return DescribeEnd(rank.wait_status, CountOomKills() - oom_kills_at_start_,
                     options_.launch->own_verb || rank.last.attached);
}

// Who failed by itself comes before who failed because a peer was gone.
const Attempt::Rank* Attempt::FindCulprit() const {
  const Rank* culprit = nullptr;
  for (const Rank& rank : ranks_) {
    if (rank.running || rank.ended_by_us || !EndedBadly(rank)) continue;
    const auto is_follower = [](const Rank& r) {
      return ExitCodeOfWait(r.wait_status) == kCommunicationCode;
    };
    if (culprit == nullptr ||
        std::make_pair(is_follower(rank), rank.ended) <
            std::make_pair(is_follower(*culprit), culprit->ended)) {
      culprit = &rank;
    }
  }
  if (culprit == nullptr) return nullptr;
  // An error that ranks agree on is one rank's, whoever of them ends first.
  const std::optional<int> source = SourceOf(*culprit);
  for (const Rank& rank : ranks_) {
    if (source == rank.rank && !rank.running && !rank.ended_by_us &&
        EndedBadly(rank)) {
      return &rank;
    }
  }
  return culprit;
}

// The rank, on whatever node, whose error `rank` ended with.
std::optional<int> Attempt::SourceOf(const Rank& rank) const {
  return options_.launch->own_verb ? SourceOfError(rank.err->tail())
                                   : std::nullopt;
}

bool Attempt::IsHere(int rank) const {
  const int local = rank - options_.plan->rank(0);
  return local >= 0 && local < options_.plan->ranks;
}

// Of whose failure `culprit`, a rank here, is a consequence; empty: of none.
std::vector<int> Attempt::SuspectsElsewhere(const Rank& culprit) const {
  const std::optional<int> source = SourceOf(culprit);
  if (source && !IsHere(*source)) return {*source};
  const bool follows =
      culprit.ended_by_us ||
      ExitCodeOfWait(culprit.wait_status) == kCommunicationCode;
  return follows && FailedElsewhere() ? RunFailed()->suspects
                                      : std::vector<int>();
}

// Ranks that all waited in vain name the one they waited for.
const Attempt::Rank* Attempt::FindHungRank() const {
  const std::optional<RunFailure> failure = RunFailed();
  if (!failure) return nullptr;
  for (int suspect : failure->suspects) {
    for (const Rank& rank : ranks_) {
      if (rank.rank == suspect && rank.ended_by_us) return &rank;
    }
  }
  return nullptr;
}

// One that said nothing until it was ended, as all here did.
const Attempt::Rank* Attempt::FindStuckRank() const {
  if (StopSignal() != 0) return nullptr;
  for (const Rank& rank : ranks_) {
    if (rank.ended_by_us) return &rank;
  }
  return nullptr;
}

// The store names suspects, and none of them is on this node.
bool Attempt::FailedElsewhere() const {
  const std::optional<RunFailure> failure = RunFailed();
  if (!failure || failure->suspects.empty()) return false;
  return std::none_of(failure->suspects.begin(), failure->suspects.end(),
                      [&](int suspect) { return IsHere(suspect); });
}

FailureReport Attempt::Report(const Rank& culprit) const {
  FailureReport report;
  report.attempt = options_.attempt;
  report.rank = culprit.rank;
  report.pid = culprit.process.pid;
  report.device = culprit.last.device;
  const int local = culprit.rank - options_.plan->rank(0);
  if (report.device.empty()) {
    report.device = options_.plan->gpus.empty()
                        ? "cpu"
                        : absl::StrCat("gpu ", options_.plan->gpus[local]);
  }
  report.reports_steps = culprit.last.attached;
  report.step = culprit.last.step;
  report.activity = culprit.last.activity;
  for (const Rank& rank : ranks_) {
    if (&rank == &culprit || !rank.last.attached) continue;
    const bool waited = ExitCodeOfWait(rank.wait_status) == kCommunicationCode;
    // One that we ended was at work: what it says of itself is all we know.
    if (waited || (rank.ended_by_us && !rank.last.activity.empty())) {
      report.waiting.push_back({rank.rank, rank.last.step, rank.last.activity});
    }
  }
  const std::optional<RunFailure> said = RunFailed();
  if (said) report.run_failure = said->text;
  const RankOutput& log =
      culprit.err->tail().empty() ? *culprit.out : *culprit.err;
  report.log = log.path();
  report.log_end.assign(log.tail().begin(), log.tail().end());
  return report;
}

void Attempt::Conclude(AttemptResult& result) const {
  const Rank* culprit = FindCulprit();
  if (culprit == nullptr) culprit = FindStuckRank();
  if (culprit == nullptr) {
    if (result.stop_signal != 0) result.exit_code = 128 + result.stop_signal;
    return;
  }
  const int code = culprit->ended_by_us ? kCommunicationCode
                                        : ExitCodeOfWait(culprit->wait_status);
  const Rank* hung = code == kCommunicationCode ? FindHungRank() : nullptr;
  FailureReport report = Report(hung != nullptr ? *hung : *culprit);
  if (hung != nullptr) {
    report.cause = "it hung: the others waited for it in vain";
    report.exit_code = kCommunicationCode;
  } else if (culprit->ended_by_us) {
    report.cause = "the ranks here were stuck, and were ended";
    report.exit_code = code;
  } else {
    report.cause = EndOf(*culprit);
    report.exit_code = code;
    if (WIFSIGNALED(culprit->wait_status)) {
      report.signal = WTERMSIG(culprit->wait_status);
    }
    result.hopeless = culprit->last.attached &&
                      WIFEXITED(culprit->wait_status) && IsHopeless(code);
  }
  const std::vector<int> elsewhere = SuspectsElsewhere(*culprit);
  if (hung == nullptr && !elsewhere.empty()) {
    report.cause =
        absl::StrCat("rank ", culprit->rank, " here: ", report.cause);
    report.rank = -1;
    report.elsewhere = elsewhere;
  }
  result.exit_code = report.exit_code;
  result.failure = std::move(report);
}

}  // namespace runtime
}  // namespace halftone
