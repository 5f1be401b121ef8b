// Ranks as processes over Gloo: the bits of ranks as threads, under any
// launcher's variables, and what the others say when one goes wrong.
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "runtime/collective/communicator.h"
#include "runtime/rendezvous/environment.h"
#include "runtime/rendezvous/socket.h"
#include "tests/support/child.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

constexpr char kRank[] = "tests/multi_rank/communicator_rank";

int FreePort() {
  auto socket = Listen("127.0.0.1", 0);
  return socket->local().port;
}

// Our own launcher's variables with rank 0 serving the store.
std::vector<Environment> Ours(int world_size, int ranks_per_node = 1) {
  const std::string master = absl::StrCat("127.0.0.1:", FreePort());
  std::vector<Environment> all;
  for (int r = 0; r < world_size; ++r) {
    all.push_back({{"HALFTONE_RANK", absl::StrCat(r)},
                   {"HALFTONE_WORLD_SIZE", absl::StrCat(world_size)},
                   {"HALFTONE_MASTER", master},
                   {"HALFTONE_TOKEN", "0123"},
                   {"TEST_RANKS_PER_NODE", absl::StrCat(ranks_per_node)}});
  }
  return all;
}

// Runs a rank per environment; `odd` gets `misbehaviour` beside the arguments.
std::vector<Result> RunRanks(const std::vector<Environment>& envs, int calls,
                             int64_t elements, int odd = -1,
                             const std::string& misbehaviour = "") {
  std::vector<Child> children;
  for (size_t r = 0; r < envs.size(); ++r) {
    std::vector<std::string> arguments = {absl::StrCat(calls),
                                          absl::StrCat(elements)};
    if (static_cast<int>(r) == odd) arguments.push_back(misbehaviour);
    arguments.insert(arguments.begin(), kRank);
    children.push_back(Start(absl::StrCat("rank-", r), arguments, envs[r]));
  }
  std::vector<Result> results(envs.size());
  for (size_t r = 0; r < envs.size(); ++r) {
    if (static_cast<int>(r) != odd) results[r] = Wait(children[r]);
  }
  if (odd >= 0) {
    Signal(children[odd].pid, SIGKILL);  // it may be stopped
    results[odd] = Wait(children[odd]);
  }
  return results;
}

// What communicator_rank computes, by ranks as threads.
std::string HashByThreads(int world_size, int calls, int64_t elements,
                          int ranks_per_node = 1) {
  auto ranks = MakeInProcessCommunicators(world_size, absl::Seconds(60));
  std::unique_ptr<Device> device = MakeCpuDevice(0, 1);
  std::unique_ptr<Stream> stream = *device->CreateStream("communicate");
  uint64_t hash = 0;
  std::vector<std::thread> threads;
  for (int r = 0; r < world_size; ++r) {
    threads.emplace_back([&, r] {
      ASSERT_TRUE(ranks[r]->ReduceByNodes(ranks_per_node).ok());
      std::vector<half> data(elements);
      for (int call = 0; call < calls; ++call) {
        for (int64_t i = 0; i < elements; ++i) {
          const int64_t x = (i * 37 + call * 11 + r * 101) % 997;
          data[i] = half(static_cast<float>(x) / 64);
        }
        ASSERT_TRUE(ranks[r]
                        ->AllReduce(data.data(), elements, DType::kF16,
                                    ReduceOp::kSum, 1, *stream)
                        .ok());
        const absl::string_view bytes(
            reinterpret_cast<const char*>(data.data()), elements * 2);
        if (r == 0) hash = hash * 31 + StableHash(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return Hex64(hash);
}

void ExpectSameBits(const std::vector<Result>& results,
                    const std::string& hash) {
  for (const Result& result : results) {
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    EXPECT_EQ(absl::StripAsciiWhitespace(result.out), hash);
  }
}

TEST(Processes, GiveTheBitsOfThreads) {
  for (int world_size : {2, 3, 4}) {
    for (int64_t elements : {1, 1000, 700001}) {
      ExpectSameBits(RunRanks(Ours(world_size), 5, elements),
                     HashByThreads(world_size, 5, elements));
    }
  }
}

TEST(Processes, GiveTheBitsOfThreadsByNodesToo) {
  for (int64_t elements : {1, 20000, 700001}) {
    const std::string hash = HashByThreads(4, 5, elements, 2);
    ExpectSameBits(RunRanks(Ours(4, 2), 5, elements), hash);
    if (elements == 1) continue;  // it may happen to be the same
    EXPECT_NE(hash, HashByThreads(4, 5, elements));
  }
}

TEST(Processes, RunUnderTorchrunsVariables) {
  const std::string port = absl::StrCat(FreePort());
  std::vector<Environment> envs;
  for (const char* rank : {"0", "1"}) {
    envs.push_back({{"RANK", rank},
                    {"LOCAL_RANK", rank},
                    {"WORLD_SIZE", "2"},
                    {"LOCAL_WORLD_SIZE", "2"},
                    {"MASTER_ADDR", "localhost"},
                    {"MASTER_PORT", port}});
  }
  ExpectSameBits(RunRanks(envs, 2, 5000), HashByThreads(2, 2, 5000));
}

// Nothing but rank and size: they find each other through their parent.
TEST(Processes, RunUnderMpisVariablesWithoutAnAddress) {
  for (const bool mpich : {false, true}) {
    std::vector<Environment> envs;
    for (const char* rank : {"0", "1"}) {
      if (mpich) {
        envs.push_back({{"PMI_RANK", rank}, {"PMI_SIZE", "2"}});
      } else {
        envs.push_back({{"OMPI_COMM_WORLD_RANK", rank},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
      }
    }
    ExpectSameBits(RunRanks(envs, 2, 5000), HashByThreads(2, 2, 5000));
  }
}

// Rank 1 ends in the middle; the others name it at once.
void ExpectNamed(const std::string& misbehaviour, const std::string& text,
                 absl::Duration limit, int world_size = 3,
                 int ranks_per_node = 1) {
  const absl::Time start = absl::Now();
  const std::vector<Result> results = RunRanks(
      Ours(world_size, ranks_per_node), 1000000, 700000, 1, misbehaviour);
  EXPECT_LT(absl::Now() - start, limit);
  for (int r = 0; r < world_size; ++r) {
    if (r == 1) continue;
    EXPECT_EQ(results[r].exit_code(), 7) << results[r].err;
    EXPECT_THAT(results[r].err, HasSubstr("rank 1"));
    EXPECT_THAT(results[r].err, HasSubstr(text));
    EXPECT_THAT(results[r].err,
                HasSubstr(absl::StrCat("on rank ", r, " of ", world_size)));
  }
}

TEST(Processes, NameARankThatIsKilled) {
  ExpectNamed("kill=20", "vanished", absl::Seconds(15));
}

// By nodes: its own waits for it, the other for that.
TEST(Processes, NameARankThatIsKilledByNodesToo) {
  ExpectNamed("kill=20", "vanished", absl::Seconds(15), 4, 2);
}

TEST(Processes, NameARankThatExits) {
  ExpectNamed("exit=20", "vanished", absl::Seconds(15));
}

TEST(Processes, NameARankThatStops) {
  ExpectNamed("stop=20", "does not answer", absl::Seconds(30));
}

TEST(Processes, NameRankZeroThoughItServesTheStore) {
  const std::vector<Result> results =
      RunRanks(Ours(2), 1000000, 700000, 0, "kill=20");
  EXPECT_EQ(results[1].exit_code(), 7);
  EXPECT_THAT(results[1].err, HasSubstr("rank 0"));
}

TEST(Processes, ADifferentTokenIsRefused) {
  std::vector<Environment> envs = Ours(2);
  envs[1]["HALFTONE_TOKEN"] = "4567";
  const std::vector<Result> results = RunRanks(envs, 1, 1, 0, "kill=9");
  EXPECT_EQ(results[1].exit_code(), 7);
  EXPECT_THAT(results[1].err, HasSubstr("does not have this run's token"));
}

TEST(Processes, APortInUseIsNamed) {
  auto taken = Listen("127.0.0.1", 0);
  ASSERT_TRUE(taken.ok());
  std::vector<Environment> envs = Ours(2);
  envs.pop_back();
  const int port = taken->local().port;
  envs[0]["HALFTONE_MASTER"] = absl::StrCat("127.0.0.1:", port);
  const std::vector<Result> results = RunRanks(envs, 1, 1);
  EXPECT_EQ(results[0].exit_code(), 7);
  EXPECT_THAT(results[0].err,
              HasSubstr(absl::StrCat("port ", port, " is in use")));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
