#include "runtime/collective/in_process_group.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/spin.h"
#include "runtime/device/host_info.h"

namespace halftone {
namespace runtime {
namespace {

// Between two looks at what only a question can tell.
constexpr std::chrono::milliseconds kGroupLook(1);

}  // namespace

InProcessGroup::InProcessGroup(int world_size, absl::Duration timeout)
    : timeout_(timeout),
      spins_(world_size <= UsableCores()),
      ranks_(world_size) {}

absl::Status InProcessGroup::Enter(int rank, const Call& call, void* buffer) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ranks_[rank].call = call;
    ranks_[rank].buffer = buffer;
  }
  return Meet(rank, /*entering=*/true);
}

absl::Status InProcessGroup::Leave(int rank) {
  return Meet(rank, /*entering=*/false);
}

absl::Status InProcessGroup::Meet(int rank, bool entering) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!failed_.ok()) return failed_;
  const int64_t meeting = meeting_.load(std::memory_order_relaxed);
  ranks_[rank].arrived = true;
  if (++arrived_ == world_size()) {
    Complete(entering);
    return failed_;
  }
  if (spins_) {
    lock.unlock();
    Spin([&] { return meeting_.load(std::memory_order_acquire) != meeting; });
    lock.lock();
  }
  const MonotonicTime start = MonotonicTime::Now();
  const auto done = [&] {
    return meeting_.load(std::memory_order_relaxed) != meeting ||
           !failed_.ok() || SomebodyRetired();
  };
  const bool in_time =
      changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout_), done);
  if (meeting_.load(std::memory_order_relaxed) != meeting) return failed_;
  if (failed_.ok()) {
    FailLocked(LateError(
        rank, in_time ? absl::ZeroDuration() : MonotonicTime::Now() - start));
  }
  return failed_;
}

absl::Status InProcessGroup::Await(
    int rank, absl::string_view what, absl::Duration timeout,
    const std::function<absl::StatusOr<bool>()>& done) {
  const MonotonicTime start = MonotonicTime::Now();
  std::unique_lock<std::mutex> lock(mutex_);
  ranks_[rank].awaiting = true;
  absl::StatusOr<bool> is_done = false;
  while (failed_.ok()) {
    lock.unlock();
    is_done = done();
    lock.lock();
    if (!is_done.ok() || *is_done) break;
    const absl::Duration waited = MonotonicTime::Now() - start;
    if (failed_.ok() && waited >= timeout) {
      std::vector<int> absent;
      for (int r = 0; r < world_size(); ++r) {
        if (!ranks_[r].awaiting) absent.push_back(r);
      }
      FailLocked(CommunicationError(
          what, " on rank ", rank, " of ", world_size(), ": ",
          absent.empty() ? "all ranks wait for it" : RankList(absent),
          absent.empty() ? "" : " did not arrive", "; waited ",
          absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1)))));
    }
    changed_.wait_for(lock, kGroupLook);
  }
  ranks_[rank].awaiting = false;
  return failed_.ok() ? is_done.status() : failed_;
}

void InProcessGroup::Complete(bool entering) {
  if (entering) {
    ++calls_;
    absl::Status different = DifferentCalls();
    if (!different.ok()) FailLocked(different);
  }
  for (Rank& rank : ranks_) rank.arrived = false;
  arrived_ = 0;
  meeting_.fetch_add(1, std::memory_order_release);
  changed_.notify_all();
}

void InProcessGroup::FailLocked(const absl::Status& status) {
  failed_ = status;
  changed_.notify_all();
}

bool InProcessGroup::SomebodyRetired() const {
  for (const Rank& rank : ranks_) {
    if (rank.retired) return true;
  }
  return false;
}

std::vector<int> InProcessGroup::Missing(bool retired) const {
  std::vector<int> missing;
  for (int r = 0; r < world_size(); ++r) {
    if (ranks_[r].arrived || (retired && !ranks_[r].retired)) continue;
    missing.push_back(r);
  }
  return missing;
}

absl::Status InProcessGroup::DifferentCalls() const {
  for (int r = 1; r < world_size(); ++r) {
    if (ranks_[r].call == ranks_[0].call) continue;
    return CommunicationError("collective ", calls_, ": rank 0 calls ",
                              Describe(ranks_[0].call), ", rank ", r, " calls ",
                              Describe(ranks_[r].call),
                              "; all ranks must run the same program");
  }
  return absl::OkStatus();
}

absl::Status InProcessGroup::LateError(int rank, absl::Duration waited) const {
  const std::string where =
      absl::StrCat(Describe(ranks_[rank].call), " on rank ", rank, " of ",
                   world_size(), ": ");
  if (waited == absl::ZeroDuration()) {
    return CommunicationError(where, RankList(Missing(/*retired=*/true)),
                              " left before it");
  }
  waited = absl::Trunc(waited, absl::Milliseconds(1));
  return CommunicationError(where, RankList(Missing(/*retired=*/false)),
                            " did not arrive; waited ",
                            absl::FormatDuration(waited));
}

void InProcessGroup::Retire(int rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  ranks_[rank].retired = true;
  changed_.notify_all();
}

void InProcessGroup::Abort(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failed_.ok()) FailLocked(status);
}

}  // namespace runtime
}  // namespace halftone
