// Where the ranks of an in-process communicator meet.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_IN_PROCESS_GROUP_H_
#define HALFTONE_RUNTIME_COLLECTIVE_IN_PROCESS_GROUP_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/collective/call.h"

namespace halftone {
namespace runtime {

// Every collective is: Enter, work on what the others showed, Leave. Between
// the two, all ranks are inside the same call and may touch each other's
// buffers; nobody returns from Leave before all are done.
class InProcessGroup {
 public:
  InProcessGroup(int world_size, absl::Duration timeout);

  int world_size() const { return static_cast<int>(ranks_.size()); }

  // Shows `buffer` to the others and waits for them. An error if they call
  // something else, if one does not come in time, left, or aborted.
  absl::Status Enter(int rank, const Call& call, void* buffer);
  absl::Status Leave(int rank);
  // As Communicator::Await.
  absl::Status Await(int rank, absl::string_view what, absl::Duration timeout,
                     const std::function<absl::StatusOr<bool>()>& done);
  // What a rank showed; valid between Enter and Leave.
  void* buffer(int rank) const { return ranks_[rank].buffer; }

  // The rank will make no more calls.
  void Retire(int rank);
  void Abort(const absl::Status& status);

 private:
  struct Rank {
    Call call;
    void* buffer = nullptr;
    bool arrived = false;
    bool retired = false;
    bool awaiting = false;
  };

  absl::Status Meet(int rank, bool entering);
  // All below hold mutex_.
  void Complete(bool entering);
  void FailLocked(const absl::Status& status);
  bool SomebodyRetired() const;
  // Ranks that did not arrive; if `retired`, only those that left for good.
  std::vector<int> Missing(bool retired) const;
  absl::Status DifferentCalls() const;
  absl::Status LateError(int rank, absl::Duration waited) const;

  const absl::Duration timeout_;
  const bool spins_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  int arrived_ = 0;
  int64_t calls_ = 0;  // that all ranks have entered
  absl::Status failed_;
  // Counts meetings; written under mutex_, read without it while spinning.
  std::atomic<int64_t> meeting_{0};
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_IN_PROCESS_GROUP_H_
