#include "runtime/collective/shared_transfers.h"

#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "runtime/collective/in_process_group.h"

namespace halftone {
namespace runtime {
namespace {

TEST(SharedSegment, IsReadByWhoKnowsItsAddress) {
  auto own = SharedSegment::Create(1000);
  ASSERT_TRUE(own.ok()) << own.status();
  auto theirs = SharedSegment::Open(own->address(), 1000);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(theirs->data()[999], 0);
  own->data()[999] = 7;
  EXPECT_EQ(theirs->data()[999], 7);
  // It stays when its maker has gone.
  *own = SharedSegment();
  EXPECT_EQ(theirs->data()[999], 7);
}

TEST(SharedSegment, NothingElseIsTakenForIt) {
  auto own = SharedSegment::Create(1000);
  ASSERT_TRUE(own.ok()) << own.status();
  const std::string address = own->address();
  const std::vector<std::string> parts = absl::StrSplit(address, ' ');
  const auto opens = [](const std::string& there, int64_t bytes) {
    return SharedSegment::Open(there, bytes).ok();
  };
  EXPECT_TRUE(opens(address, 1000));
  EXPECT_FALSE(opens(address, 1001));
  EXPECT_FALSE(opens("", 1000));
  EXPECT_FALSE(opens("no address", 1000));
  // Another machine, another network of this one (a node that is a namespace),
  // another process, another file, another segment.
  const std::vector<std::string> machine = absl::StrSplit(parts[0], '/');
  ASSERT_EQ(machine.size(), 2u) << parts[0];
  EXPECT_FALSE(opens(absl::StrCat(machine[0], "/net:[1] ", parts[1], " ",
                                  parts[2], " ", parts[3]),
                     1000));
  EXPECT_FALSE(opens(absl::StrCat("00000000-0000-0000-0000-000000000000 ",
                                  parts[1], " ", parts[2], " ", parts[3]),
                     1000));
  EXPECT_FALSE(
      opens(absl::StrCat(parts[0], " 1 ", parts[2], " ", parts[3]), 1000));
  EXPECT_FALSE(
      opens(absl::StrCat(parts[0], " ", parts[1], " 0 ", parts[3]), 1000));
  EXPECT_FALSE(opens(absl::StrCat(parts[0], " ", parts[1], " ", parts[2], " ",
                                  std::string(32, '0')),
                     1000));
  own->Unpublish();
  EXPECT_FALSE(opens(address, 1000));
}

// Ranks that cannot reach each other agree on it, so that none of them waits
// in memory for one that does not.
TEST(SharedTransfers, AllOrNone) {
  for (const bool reached : {true, false}) {
    std::unique_ptr<Transfers> made[2];
    auto group = std::make_shared<InProcessGroup>(2, absl::Seconds(20));
    const auto connect = [&](int rank) {
      auto all_gather = [&, rank](absl::string_view mine)
          -> absl::StatusOr<std::vector<std::string>> {
        // Rank 1's address is not where rank 0 looks.
        std::string text(mine);
        if (!reached && rank == 1 && mine.size() > 3) text += "0";
        absl::Status status = group->Enter(rank, Call{}, &text);
        if (!status.ok()) return status;
        std::vector<std::string> all;
        for (int r = 0; r < 2; ++r) {
          all.push_back(*static_cast<std::string*>(group->buffer(r)));
        }
        status = group->Leave(rank);
        if (!status.ok()) return status;
        return all;
      };
      auto transfers = SharedTransfers::Connect(rank, {0, 1}, all_gather);
      ASSERT_TRUE(transfers.ok()) << transfers.status();
      made[rank] = *std::move(transfers);
    };
    std::thread other(connect, 1);
    connect(0);
    other.join();
    EXPECT_EQ(made[0] != nullptr, reached);
    EXPECT_EQ(made[1] != nullptr, reached);
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
