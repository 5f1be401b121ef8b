#include "runtime/launch/node_watch.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/time/monotonic_time.h"

namespace halftone {
namespace runtime {
namespace {

// One attempt to reach the store; the destructor waits for it.
constexpr absl::Duration kTry = absl::Milliseconds(500);
// One wait for news; then the store is asked again, by which it shows that it
// can be reached, and is told what there is to tell.
constexpr absl::Duration kWait = absl::Milliseconds(100);
// So late is no answer that is on its way.
constexpr absl::Duration kSilence = absl::Seconds(1);

}  // namespace

NodeWatch::NodeWatch(const LaunchPlan& plan, const HostPort& store, int attempt)
    : ranks_of_node_0_(plan.ranks) {
  StoreClientOptions options;
  options.address = store;
  options.rank = plan.rank(0);
  options.world_size = plan.world_size();
  options.token = plan.token;
  options.attempt = attempt;
  options.is_member = false;
  thread_ = std::thread([this, options] { Watch(options); });
}

NodeWatch::~NodeWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    if (client_ != nullptr) client_->Shutdown();
  }
  thread_.join();
}

std::optional<RunFailure> NodeWatch::failure() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

std::optional<RunFailure> NodeWatch::AwaitFailure(absl::Duration limit) {
  const MonotonicTime deadline = MonotonicTime::Now() + limit;
  while (!failure() && MonotonicTime::Now() < deadline) {
    absl::SleepFor(kWait / 20);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_ && MonotonicTime::Now() > asked_ + kSilence) {
    failure_ = Gone("it does not answer");
  }
  return failure_;
}

void NodeWatch::Tell(const RunFailure& failure) {
  std::lock_guard<std::mutex> lock(mutex_);
  to_tell_ = failure;
}

bool NodeWatch::Connect(const StoreClientOptions& options) {
  while (true) {
    absl::StatusOr<std::unique_ptr<StoreClient>> client =
        StoreClient::Connect(options, MonotonicTime::Now() + kTry);
    std::unique_lock<std::mutex> lock(mutex_);
    if (over_) return false;
    if (client.ok()) {
      client_ = *std::move(client);
      return true;
    }
    lock.unlock();
    absl::SleepFor(kWait);  // the ranks say what is wrong
  }
}

void NodeWatch::Keep(RunFailure failure) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!over_ && !failure_) failure_ = std::move(failure);
}

std::optional<RunFailure> NodeWatch::TakeWhatToTell() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::optional<RunFailure> taken;
  taken.swap(to_tell_);
  asked_ = MonotonicTime::Now();
  return taken;
}

RunFailure NodeWatch::Gone(absl::string_view why) const {
  RunFailure gone;
  for (int r = 0; r < ranks_of_node_0_; ++r) gone.suspects.push_back(r);
  gone.text = absl::StrCat(
      "the launcher of node 0, its machine or the network is gone: ", why);
  return gone;
}

void NodeWatch::Watch(const StoreClientOptions& options) {
  if (!Connect(options)) return;
  while (true) {
    if (const auto ours = TakeWhatToTell()) (void)client_->Fail(*ours);
    const absl::StatusOr<WaitResult> news =
        client_->Wait({std::string(kFailureKey)}, kWait);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      asked_ = MonotonicTime::InfiniteFuture();
    }
    if (news.ok() && !news->missing.empty()) continue;
    if (news.ok()) return Keep(RunFailureFromText(news->values[0]));
    // The store's own end: no rank is left in the run.
    if (client_->store_has_closed()) return;
    return Keep(Gone(news.status().message()));
  }
}

}  // namespace runtime
}  // namespace halftone
