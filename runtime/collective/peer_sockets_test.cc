// Ranks that connect among strangers.
#include "runtime/collective/peer_sockets.h"

#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Shorter than the test's, so that a failure is told.
constexpr absl::Duration kPatience = absl::Seconds(20);

// Ranks as threads that have met; Connect() is what is tested.
class PeerSocketsTest : public ::testing::Test {
 protected:
  void Meet(int ranks) {
    StoreServerOptions server;
    server.host = "127.0.0.1";
    server.world_size = ranks;
    server.token = "secret";
    server_ = *StoreServer::Start(server);
    meetings_.resize(ranks);
    ForAll([&](int rank) {
      MeetingOptions options;
      options.place.rank = options.place.local_rank = rank;
      options.place.world_size = options.place.local_world_size = ranks;
      options.place.master = server_->address();
      options.place.master_served = true;
      options.token = "secret";
      meetings_[rank] = *Meeting::Join(options);
    });
  }
  void ForAll(const std::function<void(int)>& call) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < meetings_.size(); ++rank) {
      threads.emplace_back([&call, rank] { call(static_cast<int>(rank)); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // All ranks connect; rank r starts when `before(r)` returns.
  void Connect(const std::function<void(int)>& before = {},
               absl::Duration patience = kPatience) {
    sockets_.resize(meetings_.size());
    ForAll([&](int rank) {
      if (before) before(rank);
      sockets_[rank] = ConnectPeers(*meetings_[rank], rank, meetings_.size(),
                                    MonotonicTime::Now() + patience);
    });
  }
  // Every pair talks over its socket.
  void ExpectConnected() {
    const MonotonicTime deadline = MonotonicTime::Now() + kPatience;
    for (size_t a = 0; a < sockets_.size(); ++a) {
      ASSERT_TRUE(sockets_[a].ok()) << sockets_[a].status();
    }
    for (size_t a = 0; a < sockets_.size(); ++a) {
      for (size_t b = 0; b < sockets_.size(); ++b) {
        if (a == b) continue;
        const std::string text = absl::StrCat(a, ">", b);
        ASSERT_TRUE((*sockets_[a])[b].Send(text, deadline).ok());
        auto heard = (*sockets_[b])[a].Receive(text.size(), deadline);
        ASSERT_TRUE(heard.ok()) << heard.status();
        EXPECT_EQ(*heard, text);
      }
    }
  }
  // Asked by the last rank, on its own connection: one that waits on `rank`'s
  // would keep it from saying where it listens.
  HostPort ListenerOf(int rank) {
    auto there = meetings_.back()->store().Wait({absl::StrCat("peer/", rank)},
                                                kPatience);
    return *ParseHostPort("listener", there->values.at(0));
  }

  std::unique_ptr<StoreServer> server_;
  std::vector<std::unique_ptr<Meeting>> meetings_;
  std::vector<absl::StatusOr<std::vector<Socket>>> sockets_;
};

TEST_F(PeerSocketsTest, AllPairs) {
  Meet(4);
  Connect();
  ExpectConnected();
}

// They are there before any rank, with all that a listener may hold.
TEST_F(PeerSocketsTest, StrangersWhoComeFirst) {
  Meet(3);
  std::vector<Socket> strangers;
  Connect([&](int rank) {
    if (rank != 2) return;  // ranks 0 and 1 wait for it
    const MonotonicTime deadline = MonotonicTime::Now() + kPatience;
    const std::string rubbish[] = {
        "",
        "\n",
        "GET / HTTP/1.1\r\n\r\n",
        std::string(5000, '\xff'),
        "HTPEER02",
        "HTPEER020000000200000000" + std::string(16, 'n'),
        "HTPEER020000000200000000" + std::string(48, 'n'),
        "HTPEER02-0000001000000000" + std::string(60, 'n'),
        "HTPEER029999999900000000" + std::string(60, 'n')};
    for (int listener : {0, 1}) {
      const HostPort address = ListenerOf(listener);
      for (int i = 0; i < 400; ++i) {
        auto stranger = ConnectTo(address, deadline);
        ASSERT_TRUE(stranger.ok()) << stranger.status();
        (void)stranger->Send(rubbish[i % 9], deadline);
        strangers.push_back(*std::move(stranger));
      }
    }
  });
  ExpectConnected();
}

// And go on coming, as fast as one machine lets them.
TEST_F(PeerSocketsTest, StrangersWhoNeverCease) {
  Meet(3);
  std::atomic<bool> over{false};
  std::vector<std::thread> crowd;
  Connect([&](int rank) {
    if (rank != 2) return;
    for (int listener : {0, 1}) {
      crowd.emplace_back([&over, address = ListenerOf(listener)] {
        std::vector<Socket> held(200);
        for (size_t i = 0; !over; ++i) {
          auto stranger =
              ConnectTo(address, MonotonicTime::Now() + absl::Milliseconds(10));
          if (stranger.ok()) held[i % 200] = *std::move(stranger);
        }
      });
    }
    absl::SleepFor(absl::Milliseconds(100));
  });
  over = true;
  for (std::thread& one : crowd) one.join();
  ExpectConnected();
}

// What a rank has said is of no use to who has heard it.
TEST_F(PeerSocketsTest, ARecordedHello) {
  Meet(2);
  auto between = Listen("127.0.0.1", 0);
  std::vector<Socket> strangers;
  std::thread relay;
  Connect(
      [&](int rank) {
        if (rank != 1) return;
        const HostPort zero = ListenerOf(0);
        ASSERT_TRUE(meetings_[1]
                        ->store()
                        .Set("peer/0", ToString(between->local()))
                        .ok());
        // Takes the rank's hello, says it twice, and hands on what comes.
        relay = std::thread([&strangers, &between, zero] {
          const MonotonicTime deadline = MonotonicTime::Now() + kPatience;
          Socket caller(accept(between->fd(), nullptr, nullptr));
          auto hello = caller.Receive(72, deadline);
          ASSERT_TRUE(hello.ok()) << hello.status();
          auto first = ConnectTo(zero, deadline);
          auto again = ConnectTo(zero, deadline);
          ASSERT_TRUE(first.ok() && again.ok());
          ASSERT_TRUE(first->Send(*hello, deadline).ok());
          ASSERT_TRUE(first->Receive(48, deadline).ok());
          ASSERT_TRUE(again->Send(*hello, deadline).ok());
          const auto answer = again->Receive(48, deadline);
          EXPECT_TRUE(absl::IsOutOfRange(answer.status()) ||
                      absl::IsUnavailable(answer.status()))
              << answer.status();
          shutdown(between->fd(), SHUT_RDWR);
          strangers.push_back(*std::move(first));
        });
        absl::SleepFor(absl::Milliseconds(1));
      },
      absl::Seconds(3));
  relay.join();
  EXPECT_FALSE(sockets_[0].ok());
  EXPECT_FALSE(sockets_[1].ok());
}

// Whoever answers in a rank's place does not get its data.
TEST_F(PeerSocketsTest, AListenerThatDoesNotKnowTheToken) {
  Meet(2);
  auto false_zero = Listen("127.0.0.1", 0);
  std::atomic<bool> over{false};
  std::thread liar([&] {
    while (!over) {
      Socket caller(accept(false_zero->fd(), nullptr, nullptr));
      if (!caller.open()) return;
      const MonotonicTime soon = MonotonicTime::Now() + absl::Seconds(1);
      (void)caller.Receive(40, soon);
      (void)caller.Send(std::string(48, 'p'), soon);
    }
  });
  ASSERT_TRUE(
      meetings_[1]->store().Set("peer/0", ToString(false_zero->local())).ok());
  auto sockets = ConnectPeers(*meetings_[1], 1, 2,
                              MonotonicTime::Now() + absl::Milliseconds(700));
  EXPECT_FALSE(sockets.ok());
  over = true;
  shutdown(false_zero->fd(), SHUT_RDWR);
  liar.join();
}

TEST_F(PeerSocketsTest, ARankThatDoesNotConnectIsNamed) {
  Meet(3);
  sockets_.resize(3);
  std::thread one([&] {
    sockets_[1] = ConnectPeers(*meetings_[1], 1, 3,
                               MonotonicTime::Now() + absl::Milliseconds(1500));
  });
  sockets_[0] = ConnectPeers(*meetings_[0], 0, 3,
                             MonotonicTime::Now() + absl::Milliseconds(1000));
  one.join();
  for (int rank : {0, 1}) {
    EXPECT_EQ(ExitCodeOf(sockets_[rank].status()), ExitCode::kCommunication);
    EXPECT_THAT(std::string(sockets_[rank].status().message()),
                HasSubstr("rank 2 did not connect with rank 0"));
  }
  ASSERT_TRUE(server_->failure().has_value());
  EXPECT_THAT(server_->failure()->suspects, ElementsAre(2));
}

TEST_F(PeerSocketsTest, AFailureMeanwhileEndsTheWait) {
  Meet(2);
  server_->Fail({{1}, "rank 1 has no disk"});
  const MonotonicTime start = MonotonicTime::Now();
  auto sockets = ConnectPeers(*meetings_[0], 0, 2, start + kPatience);
  EXPECT_THAT(std::string(sockets.status().message()),
              HasSubstr("rank 1 has no disk"));
  EXPECT_LT(MonotonicTime::Now() - start, kPatience / 2);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
