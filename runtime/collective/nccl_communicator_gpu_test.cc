// The conformance tests over NCCL: on as many GPUs as the machine has, a rank
// each.
#include <thread>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/communicator_conformance.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/device/cuda/cuda_device.h"

namespace halftone {
namespace runtime {
namespace {

// The tests' buffers are the host's: copies them to the device and back.
class Staged : public Communicator {
 public:
  static absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      std::unique_ptr<Communicator> host, absl::Duration timeout) {
    auto staged = absl::make_unique<Staged>();
    HT_ASSIGN_OR_RETURN(staged->device_, CudaDevice::Create(host->rank()));
    HT_ASSIGN_OR_RETURN(staged->stream_,
                        staged->device_->CreateStream("communicate"));
    HT_ASSIGN_OR_RETURN(staged->nccl_,
                        ConnectNccl(std::move(host), staged->device_.get(),
                                    absl::Seconds(60), timeout));
    return {std::move(staged)};
  }

  absl::string_view kind() const override { return nccl_->kind(); }
  int rank() const override { return nccl_->rank(); }
  int world_size() const override { return nccl_->world_size(); }
  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream&) override {
    return OnDevice(data, count * SizeOf(dtype), [&](void* there) {
      return nccl_->AllReduce(there, count, dtype, op, pre_scale, *stream_);
    });
  }
  absl::Status Broadcast(void* data, int64_t bytes, int root,
                         Stream&) override {
    return OnDevice(data, bytes, [&](void* there) {
      return nccl_->Broadcast(there, bytes, root, *stream_);
    });
  }
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) override {
    return nccl_->AllGather(mine);
  }
  absl::Status Barrier() override { return nccl_->Barrier(); }
  absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) override {
    return nccl_->Await(what, timeout, done);
  }
  void Abort(const absl::Status& reason) override { nccl_->Abort(reason); }

 private:
  absl::Status OnDevice(void* data, int64_t bytes,
                        const std::function<absl::Status(void*)>& call) {
    HT_ASSIGN_OR_RETURN(const auto there, device_->Allocate(bytes));
    HT_RETURN_IF_ERROR(stream_->Copy(there->data(), data, bytes));
    HT_RETURN_IF_ERROR(call(there->data()));
    HT_RETURN_IF_ERROR(stream_->Copy(data, there->data(), bytes));
    return stream_->Synchronize();
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Communicator> nccl_;
};

std::vector<std::unique_ptr<Communicator>> ConnectGpus(int world_size,
                                                       absl::Duration timeout) {
  auto hosts = MakeInProcessCommunicators(world_size, timeout);
  std::vector<std::unique_ptr<Communicator>> ranks(world_size);
  std::vector<std::thread> threads;
  for (int r = 0; r < world_size; ++r) {
    threads.emplace_back([&, r] {
      auto connected = Staged::Connect(std::move(hosts[r]), timeout);
      ASSERT_TRUE(connected.ok()) << connected.status();
      ranks[r] = *std::move(connected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

std::vector<CommunicatorCase> Cases() {
  const int gpus = CountCudaDevices().value_or(1);
  std::vector<CommunicatorCase> cases;
  for (int ranks = 1; ranks <= gpus; ranks *= 2) {
    CommunicatorCase one{absl::StrCat("of_", ranks), ranks, ConnectGpus};
    one.rank_order = ranks <= 2;  // NCCL's rings begin anywhere
    one.compares_calls = false;
    cases.push_back(one);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Nccl, CommunicatorConformance,
                         ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace runtime
}  // namespace halftone
