// A communicator that does what another one does.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_FORWARDING_COMMUNICATOR_H_
#define HALFTONE_RUNTIME_COLLECTIVE_FORWARDING_COMMUNICATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collective/communicator.h"

namespace halftone {
namespace runtime {

// For those that override what they do otherwise.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(std::unique_ptr<Communicator> inner)
      : inner_(std::move(inner)) {}

  absl::string_view kind() const override { return inner_->kind(); }
  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  bool enqueues() const override { return inner_->enqueues(); }
  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream& stream) override {
    return inner_->AllReduce(data, count, dtype, op, pre_scale, stream);
  }
  absl::Status ReduceScatter(void* data, int64_t count, DType dtype,
                             float pre_scale, Stream& stream) override {
    return inner_->ReduceScatter(data, count, dtype, pre_scale, stream);
  }
  absl::Status Broadcast(void* data, int64_t bytes, int root,
                         Stream& stream) override {
    return inner_->Broadcast(data, bytes, root, stream);
  }
  absl::Status GatherParts(void* data, int64_t bytes, Stream& stream) override {
    return inner_->GatherParts(data, bytes, stream);
  }
  absl::Status ReduceByNodes(int ranks_per_node) override {
    return inner_->ReduceByNodes(ranks_per_node);
  }
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) override {
    return inner_->AllGather(mine);
  }
  absl::Status Barrier() override { return inner_->Barrier(); }
  std::unique_ptr<Memory> Allocate(int64_t bytes) override {
    return inner_->Allocate(bytes);
  }
  absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) override {
    return inner_->Await(what, timeout, done);
  }
  void Abort(const absl::Status& reason) override { inner_->Abort(reason); }
  void OnAbort(std::function<bool()> drop) override {
    inner_->OnAbort(std::move(drop));
  }

 protected:
  // Ends it before what a derived class holds for it; nothing may follow.
  void EndInner() { inner_.reset(); }

 private:
  std::unique_ptr<Communicator> inner_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_FORWARDING_COMMUNICATOR_H_
