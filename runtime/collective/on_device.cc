#include "runtime/collective/on_device.h"

#include <functional>
#include <utility>

#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

class OnDevice : public Communicator {
 public:
  OnDevice(std::unique_ptr<Device> device, std::unique_ptr<Communicator> inner)
      : device_(std::move(device)),
        stream_(*device_->CreateStream("communicate")),
        inner_(std::move(inner)) {}
  ~OnDevice() override { (void)device_->Use(); }

  absl::string_view kind() const override { return inner_->kind(); }
  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  bool enqueues() const override { return inner_->enqueues(); }
  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream&) override {
    return There(data, count * SizeOf(dtype), [&](void* there) {
      return inner_->AllReduce(there, count, dtype, op, pre_scale, *stream_);
    });
  }
  absl::Status Broadcast(void* data, int64_t bytes, int root,
                         Stream&) override {
    return There(data, bytes, [&](void* there) {
      return inner_->Broadcast(there, bytes, root, *stream_);
    });
  }
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) override {
    return inner_->AllGather(mine);
  }
  absl::Status Barrier() override { return inner_->Barrier(); }
  absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) override {
    return inner_->Await(what, timeout, done);
  }
  void Abort(const absl::Status& reason) override { inner_->Abort(reason); }

 private:
  absl::Status There(void* data, int64_t bytes,
                     const std::function<absl::Status(void*)>& call) {
    HT_RETURN_IF_ERROR(device_->Use());
    HT_ASSIGN_OR_RETURN(const auto there, device_->Allocate(bytes));
    HT_RETURN_IF_ERROR(stream_->Copy(there->data(), data, bytes));
    HT_RETURN_IF_ERROR(call(there->data()));
    HT_RETURN_IF_ERROR(stream_->Copy(data, there->data(), bytes));
    return stream_->Synchronize();
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Communicator> inner_;
};

}  // namespace

std::unique_ptr<Communicator> MakeOnDevice(
    std::unique_ptr<Device> device, std::unique_ptr<Communicator> inner) {
  return std::make_unique<OnDevice>(std::move(device), std::move(inner));
}

}  // namespace runtime
}  // namespace halftone
