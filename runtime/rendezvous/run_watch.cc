#include "runtime/rendezvous/run_watch.h"

#include "absl/strings/str_cat.h"

namespace halftone {
namespace runtime {
namespace {

// One wait; then it waits again.
constexpr absl::Duration kWait = absl::Hours(24);

}  // namespace

std::string StatusKey(int rank) { return absl::StrCat("status/", rank); }

absl::Status Inquire(StoreClient& store) { return store.Set(kWakeKey, ""); }

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
  if (!Await(kWakeKey)) return;
  // An answer does no harm if the cause was a failure.
  (void)client_->Set(StatusKey(rank_), callbacks_.status());
  const std::optional<std::string> failure = Await(kFailureKey);
  if (failure) callbacks_.on_failure(RunFailureFromText(*failure));
}

}  // namespace runtime
}  // namespace halftone
