#include "runtime/collective/nccl_fake.h"

#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/collective/forwarding_communicator.h"
#include "runtime/device/fake_device.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kComms = 4;
NcclBehaviour how;
FakeNcclComm comms[kComms];
FakeNcclComm parts[kComms][2];  // inside a node, between nodes
// The rank whose device is the calling thread's.
thread_local int current_rank = -1;

const FakeNcclComm& WholeOf(const FakeNcclComm& comm) {
  return comm.whole == nullptr ? comm : *comm.whole;
}

FakeNcclComm& Of(ncclComm_t comm) {
  FakeNcclComm& mine = *reinterpret_cast<FakeNcclComm*>(comm);
  EXPECT_EQ(current_rank, &WholeOf(mine) - comms)
      << "another device is the thread's";
  return mine;
}

// Where the thread's rank is among those of the communicator.
int64_t PlaceIn(const FakeNcclComm& comm) {
  if (comm.whole == nullptr) return &comm - comms;
  return &comm == parts[current_rank] ? current_rank % how.ranks_per_node
                                      : current_rank / how.ranks_per_node;
}

int64_t BytesOf(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat32:
      return 4;
    case ncclFloat64:
      return 8;
    default:
      return 2;
  }
}

// A host that counts the waits.
class Host : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  absl::Status Await(
      absl::string_view what, absl::Duration timeout,
      const std::function<absl::StatusOr<bool>()>& done) override {
    ++comms[rank()].waits;
    return ForwardingCommunicator::Await(what, timeout, done);
  }
};

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 0, sizeof(id->internal));
  std::strcpy(id->internal, "the id");  // zeros after it must survive too
  return how.unique_id;
}
ncclResult_t Init(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                  ncclConfig_t* config) {
  FakeNcclComm& mine = comms[rank];
  mine.id = id.internal;
  mine.blocking = config->blocking;
  *comm = reinterpret_cast<ncclComm_t>(&mine);
  return mine.Begin(absl::StrCat("init ", rank, " of ", ranks), how.init);
}
ncclResult_t Split(ncclComm_t comm, int color, int key, ncclComm_t* made,
                   ncclConfig_t* config) {
  FakeNcclComm& whole = Of(comm);
  EXPECT_EQ(whole.polls, 0) << "a call before NCCL took the one before";
  FakeNcclComm* part = parts[current_rank];
  if (part->whole != nullptr) ++part;
  part->whole = &whole;
  part->name = part == parts[current_rank] ? "inside " : "between ";
  part->blocking = config->blocking;
  // As the real one: a success at once, a communicator when the whole is ready.
  *made = nullptr;
  part->made = made;
  whole.Begin(absl::StrCat("split ", color, " ", key), ncclInProgress);
  return ncclSuccess;
}
ncclResult_t GetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  // It asks the host alone, whatever the thread's device is.
  FakeNcclComm& mine = *reinterpret_cast<FakeNcclComm*>(comm);
  *state = mine.error;
  if (*state != ncclSuccess) return ncclSuccess;
  if (mine.polls != 0) {
    --mine.polls;
    *state = ncclInProgress;
    return ncclSuccess;
  }
  for (FakeNcclComm& part : parts[&WholeOf(mine) - comms]) {
    if (part.whole != &mine || part.made == nullptr) continue;
    *std::exchange(part.made, nullptr) = reinterpret_cast<ncclComm_t>(&part);
  }
  return ncclSuccess;
}
ncclResult_t Finalize(ncclComm_t comm) {
  Of(comm).Begin("finalize", ncclInProgress);
  if (!how.leaves) Of(comm).polls = -1;
  return ncclInProgress;
}
ncclResult_t Destroy(ncclComm_t comm) {
  return Of(comm).Begin("destroy", ncclSuccess);
}
ncclResult_t Abort(ncclComm_t comm) {
  EXPECT_EQ(WholeOf(Of(comm)).held.use_count(), 1)
      << "graphs hold collectives: the abort would wait for them";
  return Of(comm).Begin("abort", ncclSuccess);
}
ncclResult_t CreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                             ncclScalarResidence_t where, ncclComm_t comm) {
  EXPECT_EQ(where, ncclScalarHostImmediate);
  Of(comm).scalar =
      std::string(static_cast<const char*>(scalar), BytesOf(type));
  *op = static_cast<ncclRedOp_t>(ncclNumOps + type);
  return Of(comm).Begin(absl::StrCat("create ", *op), ncclSuccess);
}
ncclResult_t DestroyOp(ncclRedOp_t op, ncclComm_t comm) {
  return Of(comm).Begin(absl::StrCat("destroy ", op), ncclSuccess);
}

// A fake device's stream is its own handle; a CPU's has none.
void EnqueueOn(cudaStream_t stream, const char* what,
               const FakeNcclComm& mine) {
  if (stream == nullptr) return;
  const absl::Status status = FakeDevice::EnqueueWork(
      *reinterpret_cast<Stream*>(stream), what, [held = WholeOf(mine).held] {});
  EXPECT_TRUE(status.ok()) << status;
}

ncclResult_t AllReduce(const void* in, void* out, size_t count,
                       ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                       cudaStream_t stream) {
  EXPECT_EQ(in, out);
  EXPECT_EQ(Of(comm).polls, 0) << "a call before NCCL took the one before";
  if (how.enqueue <= ncclSuccess || how.enqueue == ncclInProgress) {
    EnqueueOn(stream, "all_reduce", Of(comm));
  }
  return Of(comm).Begin(absl::StrCat("all_reduce ", count, " ", type, " ", op),
                        how.enqueue);
}
ncclResult_t Broadcast(const void* in, void* out, size_t count,
                       ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  EXPECT_EQ(in, out);
  EnqueueOn(stream, "broadcast", Of(comm));
  return Of(comm).Begin(absl::StrCat("broadcast ", count, " ", type, " ", root),
                        how.enqueue);
}

ncclResult_t AllGather(const void* in, void* out, size_t count,
                       ncclDataType_t type, ncclComm_t comm,
                       cudaStream_t stream) {
  const auto before =
      static_cast<const char*>(in) - static_cast<const char*>(out);
  EXPECT_EQ(before,
            PlaceIn(Of(comm)) * static_cast<int64_t>(count) * BytesOf(type));
  EnqueueOn(stream, "all_gather", Of(comm));
  return Of(comm).Begin(absl::StrCat("all_gather ", count, " ", type),
                        how.enqueue);
}

ncclResult_t ReduceScatter(const void* in, void* out, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  const auto before =
      static_cast<const char*>(out) - static_cast<const char*>(in);
  EXPECT_EQ(before,
            PlaceIn(Of(comm)) * static_cast<int64_t>(count) * BytesOf(type));
  EnqueueOn(stream, "reduce_scatter", Of(comm));
  return Of(comm).Begin(
      absl::StrCat("reduce_scatter ", count, " ", type, " ", op), how.enqueue);
}

}  // namespace

ncclResult_t FakeNcclComm::Begin(const std::string& what, ncclResult_t result) {
  (whole == nullptr ? this : whole)->log.push_back(name + what);
  if (result == ncclInProgress) polls = how.polls_until_ready;
  return result;
}

const NcclApi& FakeNccl() {
  static constexpr NcclApi api = {
      GetUniqueId, Init,      Split,           GetAsyncError, Finalize,
      Destroy,     Abort,     CreatePreMulSum, DestroyOp,     AllReduce,
      Broadcast,   AllGather, ReduceScatter};
  return api;
}

NcclTest::NcclTest() {
  static_assert(kMaxRanks <= kComms, "a rank has a communicator");
  how = {};
  for (auto& of_rank : parts) {
    for (FakeNcclComm& part : of_rank) {
      part.whole = nullptr;
      part.made = nullptr;
    }
  }
  for (FakeNcclComm& comm : comms) {
    comm.id.clear();
    comm.log.clear();
    comm.polls = 0;
    comm.waits = 0;
    comm.error = ncclSuccess;
    comm.held = std::make_shared<int>(0);
  }
  limits_.connect = limits_.collective = absl::Seconds(60);
}

NcclTest::~NcclTest() {
  ForEachRank([this](int rank) { ranks_[rank].reset(); });
}

NcclBehaviour& NcclTest::behaviour() { return how; }
FakeNcclComm& NcclTest::comm(int rank) { return comms[rank]; }

void NcclTest::ForEachRank(const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < world_size_; ++r) {
    threads.emplace_back([&body, r] { body(r); });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<absl::Status> NcclTest::Connect(absl::Duration host_timeout) {
  auto hosts = MakeInProcessCommunicators(world_size_, host_timeout);
  std::vector<absl::Status> statuses(world_size_);
  ForEachRank([&](int rank) {
    if (rank == absent_) return;
    NcclDevice device;
    device.use = [rank] {
      current_rank = rank;
      return absl::OkStatus();
    };
    device.set_wait_guard = [this, rank](WaitGuard guard) {
      guards_[rank] = std::move(guard);
    };
    auto made = NcclCommunicator::Connect(
        std::make_unique<Host>(std::move(hosts[rank])), device, limits_,
        FakeNccl());
    statuses[rank] = made.status();
    if (made.ok()) ranks_[rank] = *std::move(made);
  });
  return statuses;
}

void NcclTest::ConnectAll() {
  for (const absl::Status& status : Connect()) ASSERT_TRUE(status.ok());
  for (FakeNcclComm& comm : comms) comm.log.clear();
}

absl::Status NcclTest::WaitForever(int rank) {
  return guards_[rank]([] { return absl::StatusOr<bool>(false); });
}

}  // namespace runtime
}  // namespace halftone
