// The life of a communicator: what it calls of NCCL, in which order.
#include "runtime/collective/nccl_communicator.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"
#include "runtime/collective/nccl_fake.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

// A replayed step and one that is not have the same bits.
TEST(LinkedNcclTest, IsToldWhatItReadsOfTheEnvironment) {
  setenv("NCCL_GRAPH_REGISTER", "1", /*overwrite=*/1);
  (void)LinkedNccl();
  EXPECT_STREQ(std::getenv("NCCL_GRAPH_REGISTER"), "0");
  EXPECT_STREQ(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), "1");
}

TEST_F(NcclTest, ConnectsWithRank0sId) {
  world_size_ = 3;
  for (const absl::Status& status : Connect()) EXPECT_TRUE(status.ok());
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(comm(r).id, "the id");
    EXPECT_EQ(comm(r).blocking, 0);
    EXPECT_EQ(comm(r).polls, 0);  // it was waited for
    EXPECT_THAT(comm(r).log, ElementsAre(absl::StrCat("init ", r, " of 3")));
    EXPECT_EQ(ranks_[r]->rank(), r);
    EXPECT_EQ(ranks_[r]->world_size(), 3);
    EXPECT_NE(guards_[r], nullptr);
  }
}

TEST_F(NcclTest, AllHearThatRank0HasNoId) {
  behaviour().unique_id = ncclSystemError;
  for (const absl::Status& status : Connect()) {
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status), AllOf(HasSubstr("rank 0: ncclGetUniqueId"),
                                    HasSubstr("unhandled system error")));
  }
}

TEST_F(NcclTest, NamesARankThatDoesNotConnect) {
  absent_ = 1;
  const absl::Status status = Connect(absl::Milliseconds(300))[0];
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
  EXPECT_THAT(Text(status), HasSubstr("rank 1"));
}

TEST_F(NcclTest, GivesUpConnectingInTime) {
  behaviour().polls_until_ready = -1;
  limits_.connect = absl::Milliseconds(200);
  const MonotonicTime start = MonotonicTime::Now();
  for (const absl::Status& status : Connect()) {
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_THAT(Text(status), HasSubstr("connecting over NCCL"));
  }
  EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(10));
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(comm(r).log,
                ElementsAre(absl::StrCat("init ", r, " of 2"), "abort"));
  }
}

TEST_F(NcclTest, OneRanksFailureToConnectIsEverybodys) {
  comm(1).error = ncclInvalidUsage;  // NCCL: two ranks on one device
  behaviour().polls_until_ready = 2;
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

TEST_F(NcclTest, EnqueuesWhatItIsAskedFor) {
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
    EXPECT_TRUE(comm.GatherParts(data, 16, *stream_).ok());
    EXPECT_TRUE(comm.GatherParts(data, 0, *stream_).ok());
    EXPECT_TRUE(comm.ReduceScatter(data, 4, DType::kF32, 1, *stream_).ok());
    EXPECT_TRUE(comm.ReduceScatter(data, 0, DType::kF32, 1, *stream_).ok());
  });
  const auto line = [](ncclDataType_t type, ncclRedOp_t op) {
    return absl::StrCat("all_reduce 5 ", type, " ", op);
  };
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(
        comm(r).log,
        ElementsAre(
            line(ncclFloat32, ncclSum), line(ncclFloat16, ncclMax),
            line(ncclInt64, ncclSum), line(ncclUint8, ncclMin),
            absl::StrCat("broadcast 33 ", ncclUint8, " 1"),
            absl::StrCat("all_gather 16 ", ncclUint8),
            absl::StrCat("reduce_scatter 4 ", ncclFloat32, " ", ncclSum)));
  }
}

// The host's waits take a millisecond; a step of single calls has many.
TEST_F(NcclTest, ACallThatIsTakenSoonIsNotWaitedForThroughTheHost) {
  limits_.collective = absl::Milliseconds(50);
  ConnectAll();
  comm(0).waits = 0;
  char data[64];
  const auto reduce = [&] {
    return ranks_[0]->AllReduce(data, 1, DType::kF32, ReduceOp::kSum, 1,
                                *stream_);
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reduce().ok());
  EXPECT_EQ(comm(0).waits, 0);
  EXPECT_EQ(comm(0).polls, 0);  // it was waited for all the same
  behaviour().polls_until_ready = -1;
  EXPECT_EQ(ExitCodeOf(reduce()), ExitCode::kCommunication);
  EXPECT_EQ(comm(0).waits, 1);
}

TEST_F(NcclTest, RefusesWhatItCannotDo) {
  ConnectAll();
  bool flag = true;
  EXPECT_FALSE(
      ranks_[0]
          ->AllReduce(&flag, 1, DType::kBool, ReduceOp::kMax, 1, *stream_)
          .ok());
  EXPECT_EQ(ExitCodeOf(ranks_[0]->Broadcast(&flag, 1, 2, *stream_)),
            ExitCode::kCompilerBug);
  EXPECT_TRUE(comm(0).log.empty());
}

std::string Line(const char* what, int64_t count, int type, int op) {
  return absl::StrCat(what, " ", count, " ", type, " ", op);
}

// Four ranks on two nodes: parts of a node's sum are of whole cache lines, and
// what is left goes by way of the first rank.
TEST_F(NcclTest, AddsByNodes) {
  world_size_ = 4;
  behaviour().ranks_per_node = 2;
  ConnectAll();
  std::vector<char> data(2 * 100000);
  ForEachRank([&](int rank) {
    Communicator& c = *ranks_[rank];
    EXPECT_TRUE(c.ReduceByNodes(2).ok());
    const auto reduce = [&](int64_t count, DType dtype, ReduceOp op) {
      const absl::Status status =
          c.AllReduce(data.data(), count, dtype, op, 0.25f, *stream_);
      EXPECT_TRUE(status.ok()) << status;
    };
    reduce(100000, DType::kF16, ReduceOp::kSum);
    reduce(5, DType::kF32, ReduceOp::kMax);
  });
  const int scaled = ncclNumOps + ncclFloat16;
  for (int r = 0; r < 4; ++r) {
    std::vector<std::string> expected = {
        absl::StrCat("split ", r / 2, " ", r),
        absl::StrCat("split ", r % 2, " ", r),
        absl::StrCat("inside create ", scaled),
        Line("inside reduce_scatter", 49984, ncclFloat16, scaled),
        Line("between all_reduce", 49984, ncclFloat16, ncclSum),
        absl::StrCat("inside all_gather 49984 ", ncclFloat16),
        Line("inside all_reduce", 32, ncclFloat16, scaled),
        Line("between all_reduce", 32, ncclFloat16, ncclSum),
        Line("inside broadcast", 32, ncclFloat16, 0),
        Line("inside all_reduce", 5, ncclFloat32, ncclMax),
        Line("between all_reduce", 5, ncclFloat32, ncclMax),
        Line("inside broadcast", 5, ncclFloat32, 0)};
    if (r % 2 != 0) {  // not the first of its node
      expected.erase(expected.begin() + 10);
      expected.erase(expected.begin() + 7);
    }
    EXPECT_THAT(comm(r).log, ElementsAreArray(expected)) << "rank " << r;
  }
}

TEST_F(NcclTest, EndsWhatCameOfAnotherBeforeIt) {
  world_size_ = 4;
  behaviour().ranks_per_node = 2;
  ConnectAll();
  ForEachRank([&](int rank) {
    char data[64];
    EXPECT_TRUE(ranks_[rank]->ReduceByNodes(2).ok());
    EXPECT_TRUE(
        ranks_[rank]
            ->AllReduce(data, 1, DType::kF16, ReduceOp::kSum, 0.5f, *stream_)
            .ok());
    comm(rank).log.clear();
    if (rank < 2) {
      ranks_[rank].reset();
      EXPECT_THAT(
          comm(rank).log,
          ElementsAre(absl::StrCat("inside destroy ", ncclNumOps + ncclFloat16),
                      "between finalize", "between destroy", "inside finalize",
                      "inside destroy", "finalize", "destroy"));
      return;
    }
    ranks_[rank]->Abort(ModelError("no data"));
    EXPECT_THAT(comm(rank).log,
                ElementsAre("between abort", "inside abort", "abort"));
  });
}

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

TEST_F(NcclTest, MakesEachScaledSumOnceInItsDtype) {
  ConnectAll();
  char data[64];
  const std::pair<DType, std::string> cases[] = {
      {DType::kF16, Bytes(half(0.25f))},
      {DType::kBF16, Bytes(bfloat16(0.25f))},
      {DType::kF32, Bytes(0.25f)},
      {DType::kF64, Bytes(0.25)}};
  for (const auto& [dtype, bytes] : cases) {
    comm(0).log.clear();
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(
          ranks_[0]
              ->AllReduce(data, 1, dtype, ReduceOp::kSum, 0.25f, *stream_)
              .ok());
    }
    EXPECT_EQ(comm(0).scalar, bytes);
    ASSERT_EQ(comm(0).log.size(), 3u);  // made once, used twice
    const std::string op = comm(0).log[0].substr(strlen("create "));
    EXPECT_THAT(comm(0).log[1], HasSubstr(op));
    EXPECT_EQ(comm(0).log[1], comm(0).log[2]);
  }
}

TEST_F(NcclTest, EndsInOrder) {
  ConnectAll();
  char data[64];
  ForEachRank([&](int rank) {
    EXPECT_TRUE(
        ranks_[rank]
            ->AllReduce(data, 1, DType::kF16, ReduceOp::kSum, 0.5f, *stream_)
            .ok());
    comm(rank).log.clear();
    ranks_[rank].reset();
    EXPECT_THAT(comm(rank).log,
                ElementsAre(absl::StrCat("destroy ", ncclNumOps + ncclFloat16),
                            "finalize", "destroy"));
    EXPECT_EQ(guards_[rank], nullptr);
  });
}

TEST_F(NcclTest, LeavesAloneIfThePeersDoNotCome) {
  limits_.leave = absl::Milliseconds(100);
  ConnectAll();
  behaviour().leaves = false;
  const MonotonicTime start = MonotonicTime::Now();
  ranks_[0].reset();
  EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(10));
  EXPECT_THAT(comm(0).log, ElementsAre("finalize", "abort"));
  behaviour().leaves = true;
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
