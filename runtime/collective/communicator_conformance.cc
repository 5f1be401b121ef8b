#include "runtime/collective/communicator_conformance.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/reduce.h"

namespace halftone {
namespace runtime {

using ::testing::HasSubstr;

void CommunicatorConformance::Connect(absl::Duration timeout) {
  ranks_ = GetParam().make(world_size(), timeout);
  ASSERT_EQ(static_cast<int>(ranks_.size()), world_size());
  const int per_node = GetParam().ranks_per_node;
  if (per_node == 0) return;
  ForEachRank([&](Communicator& comm) {
    const absl::Status status = comm.ReduceByNodes(per_node);
    EXPECT_TRUE(status.ok()) << status;
  });
}

void EndTogether(std::vector<std::unique_ptr<Communicator>> ranks) {
  std::vector<std::thread> threads;
  for (auto& rank : ranks) {
    threads.emplace_back([&rank] { rank.reset(); });
  }
  for (std::thread& thread : threads) thread.join();
}

void CommunicatorConformance::TearDown() { EndTogether(std::move(ranks_)); }

void CommunicatorConformance::ForEachRank(
    const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (auto& rank : ranks_) {
    threads.emplace_back([&body, &rank] { body(*rank); });
  }
  for (std::thread& thread : threads) thread.join();
}

namespace {

// Of [-64, 64), with all bits of an f32. The distributions of <random> take
// longer than what is tested.
template <typename T>
std::vector<T> RandomData(int rank, int64_t count) {
  std::minstd_rand random(1000 * rank + static_cast<uint32_t>(count) + 1);
  std::vector<T> data(count);
  for (T& x : data) {
    const float drawn = static_cast<float>(random()) * 0x1p-24f - 64;
    if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(static_cast<int>(drawn));
    } else {
      x = static_cast<T>(drawn);
    }
  }
  return data;
}

template <typename T>
bool SameBytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

template <typename T>
std::vector<T> CommunicatorConformance::SumOf(
    const std::vector<std::vector<T>>& data, DType dtype, ReduceOp op,
    float pre_scale) const {
  const auto add = [&](const std::vector<T>& term, std::vector<T>* sum) {
    (*FindPortableReduceFunction(dtype, op))(sum->data(), sum->data(),
                                             term.data(),
                                             static_cast<int64_t>(term.size()));
  };
  const int per_node = GetParam().ranks_per_node;
  std::vector<T> sum, node;
  for (int r = 0; r < world_size(); ++r) {
    std::vector<T> term = data[r];
    const ScaleFunction scale = FindScaleFunction(dtype, op);
    if (scale != nullptr) {
      scale(term.data(), pre_scale, static_cast<int64_t>(term.size()));
    }
    const bool first = r == 0 || (per_node > 0 && r % per_node == 0);
    if (first) {
      node = term;
    } else {
      add(term, &node);
    }
    const bool last =
        r + 1 == world_size() || (per_node > 0 && (r + 1) % per_node == 0);
    if (!last) continue;
    if (r < per_node || per_node == 0) {
      sum = node;
    } else {
      add(node, &sum);
    }
  }
  return sum;
}

template <typename T>
void CommunicatorConformance::CheckAllReduce(DType dtype, ReduceOp op,
                                             int64_t count, float pre_scale) {
  std::vector<std::vector<T>> data(world_size());
  for (int r = 0; r < world_size(); ++r) data[r] = RandomData<T>(r, count);
  const std::vector<T> expected = SumOf(data, dtype, op, pre_scale);
  ForEachRank([&](Communicator& comm) {
    absl::Status status = comm.AllReduce(data[comm.rank()].data(), count, dtype,
                                         op, pre_scale, *stream_);
    EXPECT_TRUE(status.ok()) << status;
  });
  for (int r = 0; r < world_size(); ++r) {
    EXPECT_TRUE(SameBytes(data[r], data[0])) << "rank " << r;
  }
  if (GetParam().rank_order) {
    EXPECT_TRUE(SameBytes(data[0], expected));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorConformance);

TEST_P(CommunicatorConformance, NamesItself) {
  Connect();
  for (int r = 0; r < world_size(); ++r) {
    EXPECT_EQ(ranks_[r]->rank(), r);
    EXPECT_EQ(ranks_[r]->world_size(), world_size());
    EXPECT_FALSE(ranks_[r]->kind().empty());
  }
}

TEST_P(CommunicatorConformance, AllReducesEveryTypeAndSize) {
  Connect();
  for (int64_t count : {0, 1, 2, 7, 1001, 4096, 300007}) {
    SCOPED_TRACE(absl::StrCat(count, " elements"));
    const ReduceOp sum = ReduceOp::kSum;
    CheckAllReduce<float>(DType::kF32, sum, count, 1);
    CheckAllReduce<half>(DType::kF16, sum, count, 1);
    CheckAllReduce<bfloat16>(DType::kBF16, sum, count, 1);
    CheckAllReduce<double>(DType::kF64, sum, count, 1);
    CheckAllReduce<int32_t>(DType::kI32, sum, count, 1);
    CheckAllReduce<int64_t>(DType::kI64, sum, count, 1);
    CheckAllReduce<uint8_t>(DType::kU8, sum, count, 1);
  }
}

// Large enough for an implementation that works in pieces to have several.
TEST_P(CommunicatorConformance, AllReducesWhatIsLarge) {
  Connect();
  CheckAllReduce<float>(DType::kF32, ReduceOp::kSum, 3000001, 1);
  CheckAllReduce<half>(DType::kF16, ReduceOp::kSum, 4000003, 0.5f);
}

TEST_P(CommunicatorConformance, AllReducesMaxAndMin) {
  Connect();
  for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    CheckAllReduce<float>(DType::kF32, op, 5003, 1);
    CheckAllReduce<half>(DType::kF16, op, 5003, 1);
    CheckAllReduce<int64_t>(DType::kI64, op, 11, 1);
    CheckAllReduce<uint8_t>(DType::kU8, op, 1, 1);
  }
}

TEST_P(CommunicatorConformance, ScalesBeforeItAdds) {
  Connect();
  for (int64_t count : {3, 100003}) {
    CheckAllReduce<float>(DType::kF32, ReduceOp::kSum, count, 0.25f);
    CheckAllReduce<half>(DType::kF16, ReduceOp::kSum, count, 0.5f);
    CheckAllReduce<bfloat16>(DType::kBF16, ReduceOp::kSum, count, 0.125f);
  }
}

TEST_P(CommunicatorConformance, PreScaleKeepsF16InRange) {
  Connect();
  const float largest = 65504;
  std::vector<std::vector<half>> data(world_size(),
                                      std::vector<half>(40, half(largest)));
  float scale = 1;
  while (scale * world_size() > 1) scale /= 2;
  ForEachRank([&](Communicator& comm) {
    ASSERT_TRUE(comm.AllReduce(data[comm.rank()].data(), 40, DType::kF16,
                               ReduceOp::kSum, scale, *stream_)
                    .ok());
  });
  EXPECT_LE(static_cast<float>(data[0][39]), largest);
}

// Of sizes for small messages and for large ones, and what implementations cut
// into pieces.
TEST_P(CommunicatorConformance, GathersParts) {
  Connect();
  for (int64_t bytes : {0, 1, 512, 8192, 8193, 300007, 5000000}) {
    SCOPED_TRACE(absl::StrCat(bytes, " bytes"));
    std::vector<uint8_t> expected;
    for (int r = 0; r < world_size(); ++r) {
      const auto part = RandomData<uint8_t>(r, bytes);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    ForEachRank([&](Communicator& comm) {
      std::vector<uint8_t> data(expected.size(), 255);
      std::copy_n(expected.begin() + comm.rank() * bytes, bytes,
                  data.begin() + comm.rank() * bytes);
      const absl::Status status =
          comm.GatherParts(data.data(), bytes, *stream_);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(data == expected) << "rank " << comm.rank();
    });
  }
}

// Each rank's part has the bits of an all_reduce that adds in rank order, of
// small messages and large ones, and of parts that begin anywhere.
TEST_P(CommunicatorConformance, ReducesParts) {
  Connect();
  for (int64_t count : {0, 1, 64, 1000, 4096, 64000, 300007, 1280000}) {
    SCOPED_TRACE(absl::StrCat(count, " elements"));
    const int64_t all = count * world_size();
    std::vector<std::vector<half>> reduced(world_size());
    for (int r = 0; r < world_size(); ++r) {
      reduced[r] = RandomData<half>(r, all);
    }
    std::vector<std::vector<half>> parts = reduced;
    ForEachRank([&](Communicator& comm) {
      absl::Status status =
          comm.AllReduce(reduced[comm.rank()].data(), all, DType::kF16,
                         ReduceOp::kSum, 0.25, *stream_);
      EXPECT_TRUE(status.ok()) << status;
      status = comm.ReduceScatter(parts[comm.rank()].data(), count, DType::kF16,
                                  0.25, *stream_);
      EXPECT_TRUE(status.ok()) << status;
    });
    for (int r = 0; r < world_size(); ++r) {
      const auto part = [&](const std::vector<half>& data) {
        return std::vector<half>(data.begin() + r * count,
                                 data.begin() + (r + 1) * count);
      };
      if (!GetParam().rank_order) continue;  // then neither has a fixed one
      EXPECT_TRUE(SameBytes(part(parts[r]), part(reduced[r]))) << "rank " << r;
    }
  }
}

// As a step does it: many calls of different kinds without anything between.
TEST_P(CommunicatorConformance, ManyCallsInARow) {
  Connect();
  ForEachRank([&](Communicator& comm) {
    for (int i = 0; i < 300; ++i) {
      float x = static_cast<float>(comm.rank() + i);
      ASSERT_TRUE(
          comm.AllReduce(&x, 1, DType::kF32, ReduceOp::kSum, 1, *stream_).ok());
      const int n = world_size();
      ASSERT_EQ(x, static_cast<float>(n * i + n * (n - 1) / 2));
      const int root = i % n;
      int64_t y = comm.rank() == root ? i : -1;
      ASSERT_TRUE(comm.Broadcast(&y, sizeof(y), root, *stream_).ok());
      ASSERT_EQ(y, i);
      std::vector<int64_t> all(n, -1);
      all[comm.rank()] = comm.rank() + i;
      ASSERT_TRUE(comm.GatherParts(all.data(), sizeof(y), *stream_).ok());
      for (int r = 0; r < n; ++r) ASSERT_EQ(all[r], r + i);
      if (i % 50 == 0) {
        ASSERT_TRUE(comm.Barrier().ok());
      }
    }
  });
}

// Ranks that are ahead, each at its own time, overwrite nothing that another
// still reads. Sums of whole numbers are exact.
TEST_P(CommunicatorConformance, CallsOfAllKindsAndSizesInARow) {
  Connect();
  const int64_t sizes[] = {0, 1, 1000, 20000, 100000, 700001};
  ForEachRank([&](Communicator& comm) {
    std::mt19937 calls(17);  // alike on all ranks
    std::mt19937 naps(comm.rank());
    std::vector<float> data;
    // Each rank for itself has its data there or elsewhere.
    const int64_t block_bytes = 700001 * sizeof(float);
    std::unique_ptr<Memory> block = comm.Allocate(block_bytes);
    for (int i = 0; i < 80; ++i) {
      const int64_t count = sizes[calls() % 6];
      const int root = static_cast<int>(calls() % world_size());
      if (naps() % 16 == 0) absl::SleepFor(absl::Microseconds(naps() % 2000));
      absl::Status status;
      float sum = 0;  // what each element, or each part's, has to be
      switch (calls() % 4) {
        case 0:
          data.assign(count, static_cast<float>(i + comm.rank()));
          if (block != nullptr && naps() % 2 == 0) {
            float* const there = static_cast<float*>(block->data());
            std::copy(data.begin(), data.end(), there);
            status = comm.AllReduce(there, count, DType::kF32, ReduceOp::kSum,
                                    0.5, *stream_);
            data.assign(there, there + count);
            std::fill_n(there, count, -1);  // others have read it
          } else {
            status = comm.AllReduce(data.data(), count, DType::kF32,
                                    ReduceOp::kSum, 0.5, *stream_);
          }
          for (int r = 0; r < world_size(); ++r) sum += 0.5f * (i + r);
          break;
        case 1:
          sum = i + root;
          data.assign(count, comm.rank() == root ? sum : -1);
          status = comm.Broadcast(data.data(), count * sizeof(float), root,
                                  *stream_);
          break;
        case 2: {  // this rank's part, of whole cache lines
          const int64_t part = count / 64 * 64;
          data.assign(part * world_size(), static_cast<float>(i + comm.rank()));
          status =
              comm.ReduceScatter(data.data(), part, DType::kF32, 0.5, *stream_);
          data.erase(data.begin() + (comm.rank() + 1) * part, data.end());
          data.erase(data.begin(), data.begin() + comm.rank() * part);
          for (int r = 0; r < world_size(); ++r) sum += 0.5f * (i + r);
          break;
        }
        default:
          sum = i;
          data.assign(count * world_size(), -1);
          std::fill_n(data.begin() + comm.rank() * count, count, sum);
          status =
              comm.GatherParts(data.data(), count * sizeof(float), *stream_);
      }
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(std::count(data.begin(), data.end(), sum),
                static_cast<int64_t>(data.size()))
          << "call " << i << " of " << count;
    }
  });
}

TEST_P(CommunicatorConformance, BroadcastsFromEveryRoot) {
  Connect();
  for (int root = 0; root < world_size(); ++root) {
    for (int64_t bytes : {0, 1, 1000, 2000003}) {
      std::vector<std::string> data(world_size(), std::string(bytes, 'x'));
      for (int64_t i = 0; i < bytes; ++i) {
        data[root][i] = static_cast<char>(i * 7 + root);
      }
      const std::string expected = data[root];
      ForEachRank([&](Communicator& comm) {
        absl::Status status =
            comm.Broadcast(&data[comm.rank()][0], bytes, root, *stream_);
        EXPECT_TRUE(status.ok()) << status;
      });
      for (const std::string& got : data) EXPECT_TRUE(got == expected);
    }
  }
}

TEST_P(CommunicatorConformance, GathersDifferentSizes) {
  Connect();
  const auto text = [](int rank) {
    return std::string(rank == 1 ? 0 : rank * 100000 + 1, 'a' + rank);
  };
  ForEachRank([&](Communicator& comm) {
    auto all = comm.AllGather(text(comm.rank()));
    ASSERT_TRUE(all.ok()) << all.status();
    ASSERT_EQ(static_cast<int>(all->size()), world_size());
    for (int r = 0; r < world_size(); ++r) EXPECT_EQ((*all)[r], text(r));
  });
}

TEST_P(CommunicatorConformance, BarrierWaitsForAll) {
  Connect();
  std::atomic<int> entered{0};
  ForEachRank([&](Communicator& comm) {
    for (int i = 1; i <= 20; ++i) {
      ++entered;
      ASSERT_TRUE(comm.Barrier().ok());
      EXPECT_GE(entered.load(), i * world_size());
      ASSERT_TRUE(comm.Barrier().ok());
    }
  });
}

TEST_P(CommunicatorConformance, NamesARankThatDoesNotArrive) {
  if (world_size() == 1) return;
  Connect(absl::Milliseconds(300));
  const int absent = world_size() - 1;
  const MonotonicTime start = MonotonicTime::Now();
  ForEachRank([&](Communicator& comm) {
    if (comm.rank() == absent) return;
    std::vector<float> x(100000);
    absl::Status status = comm.AllReduce(x.data(), x.size(), DType::kF32,
                                         ReduceOp::kSum, 1, *stream_);
    ASSERT_FALSE(status.ok());
    EXPECT_LT(MonotonicTime::Now() - start, absl::Milliseconds(1400));
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("all_reduce"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("rank ", absent)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("waited"));
    EXPECT_FALSE(comm.Barrier().ok());  // and all later calls
  });
}

TEST_P(CommunicatorConformance, AbortReachesWaitingRanks) {
  if (world_size() == 1) return;
  Connect();
  const MonotonicTime start = MonotonicTime::Now();
  ForEachRank([&](Communicator& comm) {
    if (comm.rank() == 1) {
      absl::SleepFor(absl::Milliseconds(100));
      comm.Abort(OutOfMemoryError("conv1 needs 3 GiB"));
    } else {
      std::vector<float> x(100000);
      absl::Status status = comm.AllReduce(x.data(), x.size(), DType::kF32,
                                           ReduceOp::kSum, 1, *stream_);
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("conv1 needs 3 GiB"));
    }
    EXPECT_FALSE(comm.Barrier().ok());
    EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(10));
  });
}

TEST_P(CommunicatorConformance, AwaitsWhatIsDoneElsewhere) {
  Connect();
  ForEachRank([&](Communicator& comm) {
    int asked = 0;
    EXPECT_TRUE(comm.Await("a step", absl::Seconds(60),
                           [&] { return absl::StatusOr<bool>(++asked == 20); })
                    .ok());
    EXPECT_EQ(asked, 20);
    // A fault of this rank's own device says nothing of the peers.
    const absl::Status status = comm.Await(
        "a step", absl::Seconds(60),
        []() -> absl::StatusOr<bool> { return DeviceError("cuda:0 is lost"); });
    EXPECT_EQ(status.message(), "cuda:0 is lost");
    EXPECT_TRUE(comm.Barrier().ok());
  });
}

TEST_P(CommunicatorConformance, AnAwaitNamesARankThatDoesNotArrive) {
  if (world_size() == 1) return;
  Connect();
  const int absent = world_size() - 1;
  const MonotonicTime start = MonotonicTime::Now();
  ForEachRank([&](Communicator& comm) {
    if (comm.rank() == absent) return;
    const absl::Status status =
        comm.Await("a step", absl::Milliseconds(300),
                   [] { return absl::StatusOr<bool>(false); });
    ASSERT_FALSE(status.ok());
    EXPECT_LT(MonotonicTime::Now() - start, absl::Milliseconds(1400));
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a step"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("rank ", absent)));
    EXPECT_FALSE(comm.Barrier().ok());
  });
}

TEST_P(CommunicatorConformance, AbortReachesAwaits) {
  if (world_size() == 1) return;
  Connect();
  const MonotonicTime start = MonotonicTime::Now();
  ForEachRank([&](Communicator& comm) {
    if (comm.rank() == 1) {
      absl::SleepFor(absl::Milliseconds(100));
      comm.Abort(OutOfMemoryError("conv1 needs 3 GiB"));
      return;
    }
    const absl::Status status = comm.Await("a step", absl::Seconds(60), [] {
      return absl::StatusOr<bool>(false);
    });
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("conv1 needs 3 GiB"));
    EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(10));
  });
}

TEST_P(CommunicatorConformance, ARankThatLeavesIsNoticed) {
  if (world_size() == 1) return;
  Connect();
  const MonotonicTime start = MonotonicTime::Now();
  std::vector<std::thread> threads;
  for (int r = 0; r < world_size(); ++r) {
    threads.emplace_back([&, r] {
      if (r == 1) {
        ranks_[1].reset();
        return;
      }
      absl::Status status = ranks_[r]->Barrier();
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
      EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(10));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(CommunicatorConformance, DifferentCallsAreAnErrorThatNamesThem) {
  if (world_size() == 1 || !GetParam().compares_calls) return;
  Connect(absl::Milliseconds(500));
  ForEachRank([&](Communicator& comm) {
    std::vector<float> x(10);
    const int64_t count = comm.rank() == 0 ? 10 : 9;
    absl::Status status = comm.AllReduce(x.data(), count, DType::kF32,
                                         ReduceOp::kSum, 1, *stream_);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("sum of 10 f32"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("sum of 9 f32"));
  });
}

TEST_P(CommunicatorConformance, RefusesWhatItCannotReduce) {
  Connect();
  bool x = true;
  EXPECT_FALSE(ranks_[0]
                   ->AllReduce(&x, 1, DType::kBool, ReduceOp::kMax, 1, *stream_)
                   .ok());
  EXPECT_FALSE(ranks_[0]->Broadcast(&x, 1, world_size(), *stream_).ok());
}

}  // namespace runtime
}  // namespace halftone
