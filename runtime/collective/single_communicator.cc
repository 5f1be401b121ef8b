// A world of one rank.
#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/reduce.h"

namespace halftone {
namespace runtime {
namespace {

class SingleCommunicator : public Communicator {
 public:
  absl::string_view kind() const override { return "single"; }
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  bool enqueues() const override { return true; }  // there is nothing to do

  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream&) override {
    HT_RETURN_IF_ERROR(failed_);
    HT_RETURN_IF_ERROR(FindReduceFunction(dtype, op).status());
    const ScaleFunction scale = FindScaleFunction(dtype, op);
    if (scale != nullptr && pre_scale != 1) scale(data, pre_scale, count);
    return absl::OkStatus();
  }
  absl::Status Broadcast(void*, int64_t, int root, Stream&) override {
    HT_RETURN_IF_ERROR(failed_);
    if (root != 0) return CompilerBug("broadcast from rank ", root, " of 1");
    return absl::OkStatus();
  }
  absl::Status GatherParts(void*, int64_t, Stream&) override { return failed_; }
  absl::Status ReduceByNodes(int) override { return failed_; }
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) override {
    HT_RETURN_IF_ERROR(failed_);
    return std::vector<std::string>{std::string(mine)};
  }
  absl::Status Barrier() override { return failed_; }
  // There is nobody to be late: the device may take its time.
  absl::Status Await(
      absl::string_view, absl::Duration,
      const std::function<absl::StatusOr<bool>()>& done) override {
    while (failed_.ok()) {
      HT_ASSIGN_OR_RETURN(const bool is_done, done());
      if (is_done) return absl::OkStatus();
      absl::SleepFor(absl::Milliseconds(1));
    }
    return failed_;
  }
  void Abort(const absl::Status& reason) override {
    if (failed_.ok()) {
      failed_ = CommunicationError("aborted by rank 0: ", reason.message());
    }
  }

 private:
  absl::Status failed_;
};

}  // namespace

std::unique_ptr<Communicator> MakeSingleCommunicator() {
  return absl::make_unique<SingleCommunicator>();
}

}  // namespace runtime
}  // namespace halftone
