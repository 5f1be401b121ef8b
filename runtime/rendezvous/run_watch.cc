#include "runtime/rendezvous/run_watch.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

// One wait; then it waits again.
constexpr absl::Duration kWait = absl::Hours(24);

}  // namespace

std::string StatusKey(int rank, int64_t inquiry) {
  return absl::StrCat("status/", rank, "/", inquiry);
}

absl::StatusOr<int64_t> Inquire(StoreClient& store) {
  HT_ASSIGN_OR_RETURN(const int64_t count, store.Add(kInquiriesKey, 1));
  HT_RETURN_IF_ERROR(store.Set(WakeKey(count - 1), ""));
  return count - 1;
}

RunWatch::RunWatch(std::unique_ptr<StoreClient> client, int rank, int keeper,
                   Callbacks callbacks)
    : client_(std::move(client)),
      rank_(rank),
      keeper_(keeper),
      callbacks_(std::move(callbacks)),
      thread_([this] { Watch(); }) {}

RunWatch::~RunWatch() {
  over_ = true;
  client_->Shutdown();
  thread_.join();
}

std::optional<std::string> RunWatch::Await(absl::string_view key) {
  while (!over_) {
    absl::StatusOr<WaitResult> result =
        client_->Wait({std::string(key)}, kWait);
    if (!result.ok()) {
      if (!over_) {
        RunFailure failure;
        if (keeper_ >= 0) failure.suspects = {keeper_};
        failure.text = absl::StrCat(
            keeper_ >= 0 ? absl::StrCat("rank ", keeper_) : "the launcher",
            " is gone: ", result.status().message());
        callbacks_.on_failure(failure);
      }
      return std::nullopt;
    }
    if (result->missing.empty()) return result->values[0];
  }
  return std::nullopt;
}

void RunWatch::Watch() {
  for (int64_t inquiry = 0; Await(WakeKey(inquiry)); ++inquiry) {
    // An answer does no harm if the cause was a failure.
    (void)client_->Set(StatusKey(rank_, inquiry), callbacks_.status(inquiry));
    const auto failure = client_->Get(kFailureKey);
    if (!failure.ok() || !*failure) continue;  // the next wait says what is
    callbacks_.on_failure(RunFailureFromText(**failure));
    return;
  }
}

}  // namespace runtime
}  // namespace halftone
