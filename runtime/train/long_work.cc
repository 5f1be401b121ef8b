#include "runtime/train/long_work.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

// Far below any limit that makes sense, and rare beside what work costs.
constexpr std::chrono::milliseconds kBeat(100);
constexpr char kDone[] = "done", kAtWork[] = "";

}  // namespace

absl::Status DoLongWork(Communicator& communicator,
                        const std::function<absl::Status()>& work) {
  if (communicator.world_size() == 1) {
    return work == nullptr ? absl::OkStatus() : work();
  }
  // Waits for the work when it goes, also after an error of a peer.
  std::future<absl::Status> own;
  if (work != nullptr) own = std::async(std::launch::async, work);
  while (true) {
    const bool done =
        !own.valid() || own.wait_for(kBeat) == std::future_status::ready;
    HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        communicator.AllGather(done ? kDone : kAtWork));
    if (std::all_of(all.begin(), all.end(),
                    [](const std::string& rank) { return rank == kDone; })) {
      break;
    }
  }
  return own.valid() ? own.get() : absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone
