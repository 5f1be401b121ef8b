// Ranks that are threads of one process: they read and write each other's
// buffers. An all_reduce adds in rank order, or in that of ranks and then
// nodes, each rank a part of the elements, so that the bits depend neither on
// the split nor on timing.
#include <algorithm>
#include <cstring>

#include "absl/memory/memory.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/in_process_group.h"
#include "runtime/collective/reduce.h"

namespace halftone {
namespace runtime {
namespace {

class InProcessCommunicator : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<InProcessGroup> group, int rank)
      : group_(std::move(group)),
        rank_(rank),
        ranks_per_node_(group_->world_size()) {}
  ~InProcessCommunicator() override { group_->Retire(rank_); }

  absl::string_view kind() const override { return "in_process"; }
  int rank() const override { return rank_; }
  int world_size() const override { return group_->world_size(); }

  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream&) override {
    HT_ASSIGN_OR_RETURN(const ReduceArithmetic how,
                        FindReduceArithmetic(dtype, op, pre_scale));
    const Call call{Collective::kAllReduce, dtype, op, 0, count, pre_scale};
    HT_RETURN_IF_ERROR(group_->Enter(rank_, call, data));
    const int64_t blocks = (count + kReduceBlock - 1) / kReduceBlock;
    const int64_t first = blocks * rank_ / world_size();
    const int64_t end = blocks * (rank_ + 1) / world_size();
    for (int64_t block = first; block < end; ++block) {
      const int64_t start = block * kReduceBlock;
      ReduceBlock(how, start, std::min(kReduceBlock, count - start));
    }
    return group_->Leave(rank_);
  }

  absl::Status ReduceScatter(void* data, int64_t count, DType dtype,
                             float pre_scale, Stream&) override {
    const ReduceOp op = ReduceOp::kSum;
    HT_ASSIGN_OR_RETURN(const ReduceArithmetic how,
                        FindReduceArithmetic(dtype, op, pre_scale));
    const Call call{Collective::kReduceScatter, dtype, op, 0, count, pre_scale};
    HT_RETURN_IF_ERROR(group_->Enter(rank_, call, data));
    for (int64_t at = 0; at < count; at += kReduceBlock) {
      const int64_t start = rank_ * count + at;
      const int64_t elements = std::min(kReduceBlock, count - at);
      SumBlock(how, start, elements);
      if (rank_ != 0) Copy(how, start, elements, rank_);
    }
    return group_->Leave(rank_);
  }

  absl::Status Broadcast(void* data, int64_t bytes, int root,
                         Stream&) override {
    if (root < 0 || root >= world_size()) {
      return CompilerBug("broadcast from rank ", root, " of ", world_size());
    }
    const Call call{Collective::kBroadcast, DType::kInvalid, ReduceOp::kSum,
                    root, bytes};
    HT_RETURN_IF_ERROR(group_->Enter(rank_, call, data));
    if (rank_ != root && bytes > 0) {
      std::memcpy(data, group_->buffer(root), bytes);
    }
    return group_->Leave(rank_);
  }

  absl::Status GatherParts(void* data, int64_t bytes, Stream&) override {
    const Call call{Collective::kGatherParts, DType::kInvalid, ReduceOp::kSum,
                    0, bytes};
    HT_RETURN_IF_ERROR(group_->Enter(rank_, call, data));
    for (int r = 0; r < world_size(); ++r) {
      if (r == rank_ || bytes == 0) continue;
      std::memcpy(static_cast<char*>(data) + r * bytes,
                  static_cast<const char*>(group_->buffer(r)) + r * bytes,
                  bytes);
    }
    return group_->Leave(rank_);
  }

  absl::Status ReduceByNodes(int ranks_per_node) override {
    ranks_per_node_ = ranks_per_node;
    return Barrier();  // nobody adds for a rank that has not been told
  }

  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) override {
    HT_RETURN_IF_ERROR(
        group_->Enter(rank_, Call{Collective::kAllGather}, &mine));
    std::vector<std::string> all;
    for (int r = 0; r < world_size(); ++r) {
      all.emplace_back(*static_cast<absl::string_view*>(group_->buffer(r)));
    }
    HT_RETURN_IF_ERROR(group_->Leave(rank_));
    return all;
  }

  absl::Status Barrier() override {
    return group_->Enter(rank_, Call{Collective::kBarrier}, nullptr);
  }

  absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) override {
    return group_->Await(rank_, what, timeout, done);
  }

  void Abort(const absl::Status& reason) override {
    group_->Abort(
        CommunicationError("aborted by rank ", rank_, ": ", reason.message()));
  }

 private:
  char* At(const ReduceArithmetic& how, int64_t start, int rank) const {
    return static_cast<char*>(group_->buffer(rank)) + start * how.element_bytes;
  }

  // Rank 0's buffer is the accumulator, for its node's sum that of its first
  // rank; nobody else touches this block.
  void SumBlock(const ReduceArithmetic& how, int64_t start, int64_t count) {
    if (how.scale) {
      for (int r = 0; r < world_size(); ++r) {
        how.scale(At(how, start, r), how.pre_scale, count);
      }
    }
    char* const sum = At(how, start, 0);
    for (int first = 0; first < world_size(); first += ranks_per_node_) {
      char* const node = At(how, start, first);
      for (int r = first + 1; r < first + ranks_per_node_; ++r) {
        how.reduce(node, node, At(how, start, r), count);
      }
      if (first > 0) how.reduce(sum, sum, node, count);
    }
  }

  void Copy(const ReduceArithmetic& how, int64_t start, int64_t count, int to) {
    std::memcpy(At(how, start, to), At(how, start, 0),
                count * how.element_bytes);
  }

  void ReduceBlock(const ReduceArithmetic& how, int64_t start, int64_t count) {
    SumBlock(how, start, count);
    for (int r = 1; r < world_size(); ++r) Copy(how, start, count, r);
  }

  std::shared_ptr<InProcessGroup> group_;
  const int rank_;
  int ranks_per_node_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeInProcessCommunicators(
    int world_size, absl::Duration timeout) {
  auto group = std::make_shared<InProcessGroup>(world_size, timeout);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int r = 0; r < world_size; ++r) {
    all.push_back(absl::make_unique<InProcessCommunicator>(group, r));
  }
  return all;
}

}  // namespace runtime
}  // namespace halftone
