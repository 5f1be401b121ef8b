#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/collective_status.h"
#include "runtime/collective/communicator_conformance.h"
#include "runtime/collective/connect.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Ranks as threads, which find each other by a job of their own.
std::vector<std::unique_ptr<Communicator>> ConnectThreads(
    int world_size, absl::Duration timeout, bool shared_memory = true) {
  static int jobs = 0;
  ConnectOptions options;
  options.shared_memory = shared_memory;
  options.place.world_size = options.place.local_world_size = world_size;
  options.place.job_id = absl::StrCat("job ", jobs++);
  options.tmp_dir = ::testing::TempDir();
  options.timeout = timeout;
  std::vector<std::unique_ptr<Communicator>> ranks(world_size);
  std::vector<std::thread> threads;
  for (int r = 0; r < world_size; ++r) {
    threads.emplace_back([&ranks, options, r]() mutable {
      options.place.rank = options.place.local_rank = r;
      auto connected = ConnectRank(options);
      ASSERT_TRUE(connected.ok()) << connected.status();
      ranks[r] = std::move(*connected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

CommunicatorCase Case(int world_size, bool shared_memory) {
  return {absl::StrCat("of_", world_size), world_size,
          [shared_memory](int ranks, absl::Duration timeout) {
            return ConnectThreads(ranks, timeout, shared_memory);
          }};
}

CommunicatorCase ByNodes(int world_size, int ranks_per_node,
                         bool shared_memory) {
  CommunicatorCase made = Case(world_size, shared_memory);
  absl::StrAppend(&made.name, "_in_nodes_of_", ranks_per_node);
  made.ranks_per_node = ranks_per_node;
  return made;
}

INSTANTIATE_TEST_SUITE_P(Sockets, CommunicatorConformance,
                         ::testing::Values(Case(1, false), Case(2, false),
                                           Case(3, false), Case(5, false),
                                           ByNodes(4, 2, false)),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(SharedMemory, CommunicatorConformance,
                         ::testing::Values(Case(2, true), Case(3, true),
                                           Case(5, true), ByNodes(6, 3, true)),
                         [](const auto& info) { return info.param.name; });

TEST(GlooCommunicator, RanksOfOneMachineShareMemory) {
  for (const bool shared : {true, false}) {
    auto ranks = ConnectThreads(2, absl::Seconds(20), shared);
    EXPECT_EQ(ranks[1]->kind(), shared ? "shared_memory" : "gloo");
    EndTogether(std::move(ranks));
  }
}

// What a library throws for want of memory is no failure of a connection.
TEST(GlooCommunicator, WantOfMemoryIsNoFailureOfCommunication) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends processes that ask for so much";
#endif
  auto ranks = ConnectThreads(2, absl::Seconds(20));
  absl::Status statuses[2];
  std::thread other([&] { statuses[0] = ranks[0]->AllGather("x").status(); });
  // More than any machine has, which is found out before it is read.
  const char byte = 'x';
  statuses[1] =
      ranks[1]->AllGather(absl::string_view(&byte, size_t{1} << 60)).status();
  other.join();
  // Rank 0 has to make room for what comes. Each finds it out, or hears of it
  // from the other, who was faster.
  int found = 0;
  for (int r = 0; r < 2; ++r) {
    const std::string text(statuses[r].message());
    if (ExitCodeOf(statuses[r]) == ExitCode::kOutOfMemory) {
      ++found;
      EXPECT_THAT(text, HasSubstr(absl::StrCat("on rank ", r, " of 2: out of ",
                                               "memory")));
    } else {
      EXPECT_THAT(text, HasSubstr(absl::StrCat("aborted by rank ", 1 - r)));
      EXPECT_THAT(text, HasSubstr("out of memory"));
    }
    EXPECT_EQ(ExitCodeOf(ranks[r]->Barrier()), ExitCodeOf(statuses[r]));
  }
  EXPECT_GE(found, 1);
}

TEST(ExplainLate, NamesWhoIsWhere) {
  const CollectiveStatus here = {true, 7, "all_reduce (sum of 10 f32)"};
  RunFailure failure =
      ExplainLate(0, {here, here, CollectiveStatus{false, 6, "barrier"},
                      std::nullopt, CollectiveStatus{true, 7, "barrier"},
                      CollectiveStatus{false, 0, ""}});
  EXPECT_THAT(failure.suspects, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(failure.text,
              HasSubstr("rank 2 did not arrive: it is busy since its "
                        "collective 6, barrier"));
  EXPECT_THAT(failure.text, HasSubstr("rank 3 did not arrive and does not"));
  EXPECT_THAT(failure.text, HasSubstr("rank 4 did not arrive: it is in "
                                      "barrier, its collective 7"));
  EXPECT_THAT(failure.text, HasSubstr("rank 5 did not arrive: it has not"));
  EXPECT_THAT(failure.text, HasSubstr("(rank 0 waits in all_reduce"));
  failure = ExplainLate(0, {here, CollectiveStatus{true, 6, "barrier"}});
  EXPECT_THAT(failure.suspects, ElementsAre(1));
  EXPECT_THAT(failure.text, Not(HasSubstr("same program")));
  failure = ExplainLate(1, {here, here});
  EXPECT_TRUE(failure.suspects.empty());
  EXPECT_THAT(failure.text, HasSubstr("so do all others"));
}

TEST(ExplainLate, BlamesNobodyWhoHasBeenThere) {
  const CollectiveStatus here = {true, 7, "all_gather"};
  EXPECT_THAT(
      ExplainLate(0, {here, CollectiveStatus{true, 8, "barrier"},
                      CollectiveStatus{false, 7, "all_gather"}, std::nullopt})
          .suspects,
      ElementsAre(3));
}

TEST(CollectiveStatus, ToTextAndBack) {
  const auto where =
      CollectiveStatusFromText(ToText(CollectiveStatus{true, 12, "a\nb"}));
  ASSERT_TRUE(where.has_value());
  EXPECT_TRUE(where->inside);
  EXPECT_EQ(where->number, 12);
  EXPECT_EQ(where->call, "a\nb");
  EXPECT_FALSE(CollectiveStatusFromText("1\nx\n").has_value());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
