// The life of a communicator against a table of functions that play NCCL on the
// host: what is called in which order, and what becomes of errors and waits.
#include "runtime/collective/nccl_communicator.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// What all ranks' NCCL does in a test, and one rank's side of it; an
// ncclComm_t points to the latter.
struct Behaviour {
  ncclResult_t unique_id = ncclSuccess;
  ncclResult_t init = ncclInProgress;
  int polls_until_ready = 3;  // after each call; negative: never ready
  ncclResult_t enqueue = ncclInProgress;
  bool leaves = true;  // whether ncclCommFinalize comes to an end
};
Behaviour behaviour;

struct FakeComm {
  std::string id;
  int blocking = 1;
  std::vector<std::string> log;
  std::string scalar;  // the bytes of the last PreMulSum
  int polls = 0;       // until ready
  std::atomic<ncclResult_t> error{ncclSuccess};

  ncclResult_t Begin(const std::string& what, ncclResult_t result) {
    log.push_back(what);
    if (result == ncclInProgress) polls = behaviour.polls_until_ready;
    return result;
  }
};
constexpr int kMaxRanks = 4;
FakeComm comms[kMaxRanks];

FakeComm& Of(ncclComm_t comm) { return *reinterpret_cast<FakeComm*>(comm); }

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 0, sizeof(id->internal));
  std::strcpy(id->internal, "the id");  // zeros after it must survive too
  return behaviour.unique_id;
}
ncclResult_t Init(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                  ncclConfig_t* config) {
  FakeComm& mine = comms[rank];
  mine.id = id.internal;
  mine.blocking = config->blocking;
  *comm = reinterpret_cast<ncclComm_t>(&mine);
  return mine.Begin(absl::StrCat("init ", rank, " of ", ranks), behaviour.init);
}
ncclResult_t GetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  FakeComm& mine = Of(comm);
  *state = mine.error;
  if (*state == ncclSuccess && mine.polls != 0) {
    --mine.polls;
    *state = ncclInProgress;
  }
  return ncclSuccess;
}
ncclResult_t Finalize(ncclComm_t comm) {
  Of(comm).Begin("finalize", ncclInProgress);
  if (!behaviour.leaves) Of(comm).polls = -1;
  return ncclInProgress;
}
ncclResult_t Destroy(ncclComm_t comm) {
  return Of(comm).Begin("destroy", ncclSuccess);
}
ncclResult_t Abort(ncclComm_t comm) {
  return Of(comm).Begin("abort", ncclSuccess);
}
ncclResult_t CreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                             ncclScalarResidence_t where, ncclComm_t comm) {
  EXPECT_EQ(where, ncclScalarHostImmediate);
  const int bytes = type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : 2;
  Of(comm).scalar = std::string(static_cast<const char*>(scalar), bytes);
  *op = static_cast<ncclRedOp_t>(ncclNumOps + type);
  return Of(comm).Begin(absl::StrCat("create ", *op), ncclSuccess);
}
ncclResult_t DestroyOp(ncclRedOp_t op, ncclComm_t comm) {
  return Of(comm).Begin(absl::StrCat("destroy ", op), ncclSuccess);
}
ncclResult_t AllReduce(const void* in, void* out, size_t count,
                       ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                       cudaStream_t) {
  EXPECT_EQ(in, out);
  EXPECT_EQ(Of(comm).polls, 0) << "a call before NCCL took the one before";
  return Of(comm).Begin(absl::StrCat("all_reduce ", count, " ", type, " ", op),
                        behaviour.enqueue);
}
ncclResult_t Broadcast(const void* in, void* out, size_t count,
                       ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t) {
  EXPECT_EQ(in, out);
  return Of(comm).Begin(absl::StrCat("broadcast ", count, " ", type, " ", root),
                        behaviour.enqueue);
}

constexpr NcclApi kFake = {GetUniqueId, Init,     GetAsyncError,   Finalize,
                           Destroy,     Abort,    CreatePreMulSum, DestroyOp,
                           AllReduce,   Broadcast};

class NcclCommunicatorTest : public ::testing::Test {
 protected:
  NcclCommunicatorTest() {
    behaviour = {};
    for (FakeComm& comm : comms) {
      comm.id.clear();
      comm.log.clear();
      comm.polls = 0;
      comm.error = ncclSuccess;
    }
    limits_.connect = limits_.collective = absl::Seconds(60);
  }
  ~NcclCommunicatorTest() override {
    ForEachRank([this](int rank) { ranks_[rank].reset(); });
  }

  void ForEachRank(const std::function<void(int rank)>& body) {
    std::vector<std::thread> threads;
    for (int r = 0; r < world_size_; ++r) {
      threads.emplace_back([&body, r] { body(r); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // The status of each rank's Connect.
  std::vector<absl::Status> Connect(
      absl::Duration host_timeout = absl::Seconds(60)) {
    auto hosts = MakeInProcessCommunicators(world_size_, host_timeout);
    std::vector<absl::Status> statuses(world_size_);
    ForEachRank([&](int rank) {
      if (rank == absent_) return;
      NcclDevice device;
      device.use = [] { return absl::OkStatus(); };
      device.set_wait_guard = [this, rank](WaitGuard guard) {
        guards_[rank] = std::move(guard);
      };
      auto made = NcclCommunicator::Connect(std::move(hosts[rank]), device,
                                            limits_, kFake);
      statuses[rank] = made.status();
      if (made.ok()) ranks_[rank] = *std::move(made);
    });
    return statuses;
  }
  void ConnectAll() {
    for (const absl::Status& status : Connect()) ASSERT_TRUE(status.ok());
    for (FakeComm& comm : comms) comm.log.clear();
  }
  // A wait for a device that is never done.
  absl::Status WaitForever(int rank) {
    return guards_[rank]([] { return absl::StatusOr<bool>(false); });
  }

  int world_size_ = 2;
  int absent_ = -1;
  NcclLimits limits_;
  std::unique_ptr<Device> device_ = MakeCpuDevice(0, 1);
  std::unique_ptr<Stream> stream_ = *device_->CreateStream("communicate");
  std::unique_ptr<Communicator> ranks_[kMaxRanks];
  WaitGuard guards_[kMaxRanks];
};

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

TEST_F(NcclCommunicatorTest, ConnectsWithRank0sId) {
  world_size_ = 3;
  for (const absl::Status& status : Connect()) EXPECT_TRUE(status.ok());
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(comms[r].id, "the id");
    EXPECT_EQ(comms[r].blocking, 0);
    EXPECT_EQ(comms[r].polls, 0);  // it was waited for
    EXPECT_THAT(comms[r].log, ElementsAre(absl::StrCat("init ", r, " of 3")));
    EXPECT_EQ(ranks_[r]->rank(), r);
    EXPECT_EQ(ranks_[r]->world_size(), 3);
    EXPECT_NE(guards_[r], nullptr);
  }
}

TEST_F(NcclCommunicatorTest, AllHearThatRank0HasNoId) {
  behaviour.unique_id = ncclSystemError;
  for (const absl::Status& status : Connect()) {
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status), AllOf(HasSubstr("rank 0: ncclGetUniqueId"),
                                    HasSubstr("unhandled system error")));
  }
}

TEST_F(NcclCommunicatorTest, NamesARankThatDoesNotConnect) {
  absent_ = 1;
  const absl::Status status = Connect(absl::Milliseconds(300))[0];
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_THAT(Text(status), HasSubstr("rank 1"));
}

TEST_F(NcclCommunicatorTest, GivesUpConnectingInTime) {
  behaviour.polls_until_ready = -1;
  limits_.connect = absl::Milliseconds(200);
  const absl::Time start = absl::Now();
  for (const absl::Status& status : Connect()) {
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status), HasSubstr("connecting over NCCL"));
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(comms[r].log,
                ElementsAre(absl::StrCat("init ", r, " of 2"), "abort"));
  }
}

TEST_F(NcclCommunicatorTest, OneRanksFailureToConnectIsEverybodys) {
  comms[1].error = ncclInvalidUsage;  // NCCL: two ranks on one device
  behaviour.polls_until_ready = 2;
  const std::vector<absl::Status> statuses = Connect();
  EXPECT_THAT(Text(statuses[1]),
              AllOf(HasSubstr("rank 1 of 2"), HasSubstr("invalid usage")));
  // Rank 0 may have been done before it heard of it.
  if (ranks_[0] != nullptr) {
    const absl::Status status = ranks_[0]->Barrier();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication) << status;
    EXPECT_THAT(Text(status), HasSubstr("rank 1"));
  } else {
    EXPECT_THAT(Text(statuses[0]), HasSubstr("rank 1"));
  }
}

TEST_F(NcclCommunicatorTest, EnqueuesWhatItIsAskedFor) {
  ConnectAll();
  char data[64];
  ForEachRank([&](int rank) {
    Communicator& comm = *ranks_[rank];
    const auto reduce = [&](DType dtype, ReduceOp op, float scale) {
      const absl::Status status =
          comm.AllReduce(data, 5, dtype, op, scale, *stream_);
      EXPECT_TRUE(status.ok()) << status;
    };
    reduce(DType::kF32, ReduceOp::kSum, 1);
    reduce(DType::kF16, ReduceOp::kMax, 0.5f);
    reduce(DType::kI64, ReduceOp::kSum, 0.5f);  // not scaled
    reduce(DType::kU8, ReduceOp::kMin, 1);
    EXPECT_TRUE(
        comm.AllReduce(data, 0, DType::kF32, ReduceOp::kSum, 1, *stream_).ok());
    EXPECT_TRUE(comm.Broadcast(data, 33, 1, *stream_).ok());
    EXPECT_TRUE(comm.Broadcast(data, 0, 1, *stream_).ok());
  });
  const auto line = [](ncclDataType_t type, ncclRedOp_t op) {
    return absl::StrCat("all_reduce 5 ", type, " ", op);
  };
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(
        comms[r].log,
        ElementsAre(line(ncclFloat32, ncclSum), line(ncclFloat16, ncclMax),
                    line(ncclInt64, ncclSum), line(ncclUint8, ncclMin),
                    absl::StrCat("broadcast 33 ", ncclUint8, " 1")));
  }
}

TEST_F(NcclCommunicatorTest, RefusesWhatItCannotDo) {
  ConnectAll();
  bool flag = true;
  EXPECT_FALSE(
      ranks_[0]
          ->AllReduce(&flag, 1, DType::kBool, ReduceOp::kMax, 1, *stream_)
          .ok());
  EXPECT_EQ(ExitCodeOf(ranks_[0]->Broadcast(&flag, 1, 2, *stream_)),
            ExitCode::kCompilerBug);
  EXPECT_TRUE(comms[0].log.empty());
}

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

TEST_F(NcclCommunicatorTest, MakesEachScaledSumOnceInItsDtype) {
  ConnectAll();
  char data[64];
  const std::pair<DType, std::string> cases[] = {
      {DType::kF16, Bytes(half(0.25f))},
      {DType::kBF16, Bytes(bfloat16(0.25f))},
      {DType::kF32, Bytes(0.25f)},
      {DType::kF64, Bytes(0.25)}};
  for (const auto& [dtype, bytes] : cases) {
    comms[0].log.clear();
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(
          ranks_[0]
              ->AllReduce(data, 1, dtype, ReduceOp::kSum, 0.25f, *stream_)
              .ok());
    }
    EXPECT_EQ(comms[0].scalar, bytes);
    ASSERT_EQ(comms[0].log.size(), 3u);  // made once, used twice
    const std::string op = comms[0].log[0].substr(strlen("create "));
    EXPECT_THAT(comms[0].log[1], HasSubstr(op));
    EXPECT_EQ(comms[0].log[1], comms[0].log[2]);
  }
}

TEST_F(NcclCommunicatorTest, EndsInOrder) {
  ConnectAll();
  char data[64];
  ForEachRank([&](int rank) {
    EXPECT_TRUE(
        ranks_[rank]
            ->AllReduce(data, 1, DType::kF16, ReduceOp::kSum, 0.5f, *stream_)
            .ok());
    comms[rank].log.clear();
    ranks_[rank].reset();
    EXPECT_THAT(comms[rank].log,
                ElementsAre(absl::StrCat("destroy ", ncclNumOps + ncclFloat16),
                            "finalize", "destroy"));
    EXPECT_EQ(guards_[rank], nullptr);
  });
}

TEST_F(NcclCommunicatorTest, LeavesAloneIfThePeersDoNotCome) {
  limits_.leave = absl::Milliseconds(100);
  ConnectAll();
  behaviour.leaves = false;
  const absl::Time start = absl::Now();
  ranks_[0].reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  EXPECT_THAT(comms[0].log, ElementsAre("finalize", "abort"));
  behaviour.leaves = true;
}

TEST_F(NcclCommunicatorTest, AnErrorOfACallIsTheEnd) {
  ConnectAll();
  behaviour.enqueue = ncclRemoteError;
  char data[64];
  const absl::Status status =
      ranks_[0]->AllReduce(data, 10, DType::kF16, ReduceOp::kSum, 1, *stream_);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("ncclAllReduce for all_reduce (sum "
                                            "of 10 f16) on rank 0 of 2"),
                                  HasSubstr("remote process")));
  EXPECT_THAT(comms[0].log, IsSupersetOf({"abort"}));
  // Every later call fails alike, and the peer's next one as well.
  EXPECT_EQ(ranks_[0]->Barrier(), status);
  EXPECT_EQ(ranks_[0]->AllGather("x").status(), status);
  EXPECT_EQ(ranks_[0]->Broadcast(data, 1, 0, *stream_), status);
  EXPECT_THAT(Text(ranks_[1]->Barrier()), HasSubstr("rank 0"));
  EXPECT_THAT(comms[1].log, ElementsAre("abort"));
}

// NCCL reports a lost peer while a kernel of it hangs on the device.
TEST_F(NcclCommunicatorTest, AnAsynchronousErrorEndsAWait) {
  ConnectAll();
  comms[0].error = ncclRemoteError;
  const absl::Status status = WaitForever(0);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("rank 0 of 2"), HasSubstr("remote process")));
  EXPECT_THAT(comms[0].log, ElementsAre("abort"));
  EXPECT_THAT(Text(WaitForever(1)), HasSubstr("rank 0"));
}

TEST_F(NcclCommunicatorTest, AWaitEndsWhenThePeerAborts) {
  ConnectAll();
  ForEachRank([&](int rank) {
    if (rank == 1) {
      absl::SleepFor(absl::Milliseconds(100));
      ranks_[1]->Abort(OutOfMemoryError("conv1 needs 3 GiB"));
      EXPECT_EQ(ExitCodeOf(ranks_[1]->Barrier()), ExitCode::kCommunication);
      return;
    }
    const absl::Status status = WaitForever(0);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status),
                AllOf(HasSubstr("rank 1"), HasSubstr("conv1 needs 3 GiB")));
  });
  for (int r = 0; r < 2; ++r) EXPECT_THAT(comms[r].log, ElementsAre("abort"));
}

TEST_F(NcclCommunicatorTest, AWaitNamesThePeerThatIsLate) {
  world_size_ = 3;
  limits_.collective = absl::Milliseconds(300);
  ConnectAll();
  ForEachRank([&](int rank) {
    if (rank == 1) return;  // busy with something else
    const absl::Status status = WaitForever(rank);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status), AllOf(HasSubstr("a step on the device"),
                                    HasSubstr("rank 1 did not arrive")));
    EXPECT_THAT(comms[rank].log, ElementsAre("abort"));
  });
}

TEST_F(NcclCommunicatorTest, ALongWaitThatEndsIsNoError) {
  ConnectAll();
  int asked = 0;
  EXPECT_TRUE(
      guards_[0]([&] { return absl::StatusOr<bool>(++asked == 20); }).ok());
  EXPECT_TRUE(comms[0].log.empty());
}

TEST_F(NcclCommunicatorTest, TheDevicesOwnErrorKeepsItsClass) {
  ConnectAll();
  const absl::Status status = guards_[0]([]() -> absl::StatusOr<bool> {
    return DeviceError("cuda:0: an illegal address");
  });
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice);
  EXPECT_THAT(comms[0].log, ElementsAre("abort"));
  const absl::Status peers = WaitForever(1);
  EXPECT_EQ(ExitCodeOf(peers), ExitCode::kCommunication);
  EXPECT_THAT(Text(peers), HasSubstr("an illegal address"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
