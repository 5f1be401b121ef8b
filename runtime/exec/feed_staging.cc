#include "runtime/exec/feed_staging.h"

#include "graph/base/error.h"

namespace halftone {
namespace runtime {

absl::Status FeedStaging::Allocate(int64_t bytes) {
  if (arrived_ == nullptr) {
    HT_ASSIGN_OR_RETURN(arrived_, device_->CreateEvent());
    HT_ASSIGN_OR_RETURN(taken_, device_->CreateEvent());
  }
  // The staging arena may be new: nothing enters before compute filled it.
  HT_RETURN_IF_ERROR(streams_->compute->Record(*taken_));
  if (bytes <= bytes_) return absl::OkStatus();
  // Slots move: what reads them must be done.
  HT_RETURN_IF_ERROR(streams_->copy_in->Synchronize());
  HT_ASSIGN_OR_RETURN(pinned_,
                      device_->AllocatePinned(PreparedPlan::kRing * bytes));
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status FeedStaging::Enqueue(int slot, char* staging, char* feeds,
                                  int64_t bytes) {
  Stream& copy_in = *streams_->copy_in;
  Stream& compute = *streams_->compute;
  HT_RETURN_IF_ERROR(copy_in.Wait(*taken_));
  HT_RETURN_IF_ERROR(copy_in.Copy(staging, Slot(slot), bytes));
  HT_RETURN_IF_ERROR(copy_in.Record(*arrived_));
  HT_RETURN_IF_ERROR(compute.Wait(*arrived_));
  HT_RETURN_IF_ERROR(compute.Copy(feeds, staging, bytes));
  return compute.Record(*taken_);
}

}  // namespace runtime
}  // namespace halftone
