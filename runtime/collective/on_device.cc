#include "runtime/collective/on_device.h"

#include <functional>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "runtime/collective/forwarding_communicator.h"

namespace halftone {
namespace runtime {
namespace {

class OnDevice : public ForwardingCommunicator {
 public:
  OnDevice(std::unique_ptr<Device> device, std::unique_ptr<Communicator> inner)
      : ForwardingCommunicator(std::move(inner)),
        device_(std::move(device)),
        stream_(*device_->CreateStream("communicate")) {}
  ~OnDevice() override {
    (void)device_->Use();
    EndInner();
  }

  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream&) override {
    return There(data, count * SizeOf(dtype), [&](void* there) {
      return ForwardingCommunicator::AllReduce(there, count, dtype, op,
                                               pre_scale, *stream_);
    });
  }
  absl::Status ReduceScatter(void* data, int64_t count, DType dtype,
                             float pre_scale, Stream&) override {
    const int64_t bytes = count * world_size() * SizeOf(dtype);
    return There(data, bytes, [&](void* there) {
      return ForwardingCommunicator::ReduceScatter(there, count, dtype,
                                                   pre_scale, *stream_);
    });
  }
  absl::Status Broadcast(void* data, int64_t bytes, int root,
                         Stream&) override {
    return There(data, bytes, [&](void* there) {
      return ForwardingCommunicator::Broadcast(there, bytes, root, *stream_);
    });
  }
  absl::Status GatherParts(void* data, int64_t bytes, Stream&) override {
    return There(data, bytes * world_size(), [&](void* there) {
      return ForwardingCommunicator::GatherParts(there, bytes, *stream_);
    });
  }

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
};

}  // namespace

std::unique_ptr<Communicator> MakeOnDevice(
    std::unique_ptr<Device> device, std::unique_ptr<Communicator> inner) {
  return std::make_unique<OnDevice>(std::move(device), std::move(inner));
}

}  // namespace runtime
}  // namespace halftone
