#include "runtime/exec/feed_staging.h"

#include <cstring>

#include "graph/base/check.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {

absl::Status FeedStaging::Allocate(int64_t bytes, bool micro_batches) {
  if (arrived_ == nullptr) {
    HT_ASSIGN_OR_RETURN(arrived_, device_->CreateEvent());
    HT_ASSIGN_OR_RETURN(taken_, device_->CreateEvent());
  }
  // The staging arena may be new: nothing enters before compute filled it.
  HT_RETURN_IF_ERROR(streams_->compute->Record(*taken_));
  if (bytes <= bytes_) return absl::OkStatus();
  // Slots move: what reads them must be done.
  HT_RETURN_IF_ERROR(streams_->copy_in->Synchronize());
  const int slots = PreparedPlan::kRing + (micro_batches ? kMicroBatches : 0);
  HT_ASSIGN_OR_RETURN(pinned_, device_->AllocatePinned(slots * bytes));
  for (int i = PreparedPlan::kRing; i < slots; ++i) {
    std::unique_ptr<Event>& left = left_[i - PreparedPlan::kRing];
    if (left != nullptr) continue;
    HT_ASSIGN_OR_RETURN(left, device_->CreateEvent());
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status FeedStaging::Begin(int slot) {
  micro_ = slot - PreparedPlan::kRing;
  if (micro_ >= 0 && recorded_[micro_]) {
    HT_RETURN_IF_ERROR(left_[micro_]->Synchronize());
  }
  slot_ = static_cast<char*>(pinned_->data()) + slot * bytes_;
  runs_.clear();  // keeps its memory: a step allocates nothing
  open_ = false;
  return absl::OkStatus();
}

void FeedStaging::Put(int64_t offset, absl::Span<const uint8_t> bytes) {
  std::memcpy(slot_ + offset, bytes.data(), bytes.size());
  if (!open_) runs_.push_back({offset, offset});
  HT_CHECK(offset >= runs_.back().end, "feeds in the order of their offsets");
  runs_.back().end = offset + static_cast<int64_t>(bytes.size());
  open_ = true;
}

absl::Status FeedStaging::Enqueue(char* staging, char* feeds) {
  if (runs_.empty()) return absl::OkStatus();
  Stream& copy_in = *streams_->copy_in;
  Stream& compute = *streams_->compute;
  HT_RETURN_IF_ERROR(copy_in.Wait(*taken_));
  for (const Run& run : runs_) {
    HT_RETURN_IF_ERROR(copy_in.Copy(staging + run.begin, slot_ + run.begin,
                                    run.end - run.begin));
  }
  HT_RETURN_IF_ERROR(copy_in.Record(*arrived_));
  if (micro_ >= 0) {
    HT_RETURN_IF_ERROR(copy_in.Record(*left_[micro_]));
    recorded_[micro_] = true;
  }
  HT_RETURN_IF_ERROR(compute.Wait(*arrived_));
  for (const Run& run : runs_) {
    HT_RETURN_IF_ERROR(compute.Copy(feeds + run.begin, staging + run.begin,
                                    run.end - run.begin));
  }
  return compute.Record(*taken_);
}

}  // namespace runtime
}  // namespace halftone
