#include <sys/socket.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"
#include "runtime/rendezvous/store_client.h"
#include "runtime/rendezvous/store_message.h"
#include "runtime/rendezvous/store_server.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreTest : public ::testing::Test {
 protected:
  void StartServer(int world_size, int attempt = 0) {
    StoreServerOptions options;
    options.host = "127.0.0.1";
    options.world_size = world_size;
    options.token = "secret";
    options.attempt = attempt;
    auto server = StoreServer::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(*server);
  }
  StoreClientOptions Options(int rank, int world_size) {
    StoreClientOptions options;
    options.address = server_->address();
    options.rank = rank;
    options.world_size = world_size;
    options.token = "secret";
    return options;
  }
  std::unique_ptr<StoreClient> Connect(const StoreClientOptions& options) {
    auto client =
        StoreClient::Connect(options, MonotonicTime::Now() + absl::Seconds(20));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? std::move(*client) : nullptr;
  }
  std::string Refusal(const StoreClientOptions& options) {
    auto client =
        StoreClient::Connect(options, MonotonicTime::Now() + absl::Seconds(20));
    EXPECT_FALSE(client.ok());
    EXPECT_EQ(ExitCodeOf(client.status()), ExitCode::kCommunication);
    return std::string(client.status().message());
  }

  std::unique_ptr<StoreServer> server_;
};

TEST_F(StoreTest, SetsGetsAddsAndWaits) {
  StartServer(2);
  auto a = Connect(Options(0, 2));
  auto b = Connect(Options(1, 2));
  EXPECT_EQ(a->Get("x")->has_value(), false);
  ASSERT_TRUE(a->Set("x", std::string("\0one", 4)).ok());
  EXPECT_EQ(**b->Get("x"), std::string("\0one", 4));
  ASSERT_TRUE(b->Set("x", "").ok());
  EXPECT_EQ(**a->Get("x"), "");
  EXPECT_EQ(*a->Add("n", 5), 5);
  EXPECT_EQ(*b->Add("n", -7), -2);
  std::thread setter([&] {
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_TRUE(b->Set("y", "two").ok());
  });
  auto result = a->Wait({"x", "y"}, absl::Seconds(20));
  setter.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->values, ElementsAre("", "two"));
  EXPECT_THAT(server_->members(), ElementsAre(0, 1));
  EXPECT_EQ(**a->Get(kReachedKey), "127.0.0.1");
}

TEST_F(StoreTest, AWaitNamesTheMissingKeysInTime) {
  StartServer(4);
  auto a = Connect(Options(0, 4));
  const MonotonicTime start = MonotonicTime::Now();
  auto result = a->Wait({MemberKey(0), MemberKey(2)}, absl::Milliseconds(100));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->missing, ElementsAre("member/2"));
  EXPECT_GE(MonotonicTime::Now() - start, absl::Milliseconds(99));
  EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(5));
}

TEST_F(StoreTest, RefusesWhoDoesNotBelong) {
  StartServer(2);
  StoreClientOptions options = Options(0, 2);
  options.token = "guess";
  EXPECT_THAT(Refusal(options), HasSubstr("does not have this run's token"));
  EXPECT_THAT(Refusal(Options(0, 3)),
              HasSubstr("it expects 3 ranks; this run has 2"));
  EXPECT_THAT(Refusal(Options(2, 2)), HasSubstr("there is no rank 2"));
  auto first = Connect(Options(1, 2));
  EXPECT_THAT(Refusal(Options(1, 2)),
              HasSubstr("rank 1 is already there: pid "));
}

TEST_F(StoreTest, NobodyThereIsAnErrorInTime) {
  StartServer(1);
  StoreClientOptions options = Options(0, 1);
  server_.reset();
  auto client = StoreClient::Connect(
      options, MonotonicTime::Now() + absl::Milliseconds(200));
  EXPECT_THAT(std::string(client.status().message()),
              HasSubstr(absl::StrCat("no connection to 127.0.0.1:",
                                     options.address.port, " within")));
}

TEST_F(StoreTest, APortInUseIsNamedWithTheRemedy) {
  StartServer(1);
  StoreServerOptions options;
  options.host = "127.0.0.1";
  options.port = server_->address().port;
  auto second = StoreServer::Start(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ExitCodeOf(second.status()), ExitCode::kCommunication);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("port ", options.port, " is in use")));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--master"));
}

TEST_F(StoreTest, AnotherProgramOnThePortIsRecognised) {
  auto listener = Listen("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::thread other([&] {
    Socket peer(accept(listener->fd(), nullptr, nullptr));
    EXPECT_TRUE(peer.Send("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
                          MonotonicTime::Now() + absl::Seconds(5))
                    .ok());
  });
  StartServer(1);
  StoreClientOptions options = Options(0, 1);
  options.address = listener->local();
  EXPECT_THAT(Refusal(options), HasSubstr("not a Halftone rendezvous"));
  other.join();
}

TEST_F(StoreTest, ALaterAttemptWaitsForItsStore) {
  StartServer(1);
  const HostPort address = server_->address();
  StoreClientOptions options = Options(0, 1);
  options.attempt = 1;
  std::thread restart([&] {
    absl::SleepFor(absl::Milliseconds(300));
    server_.reset();
    StoreServerOptions next;
    next.host = address.host;
    next.port = address.port;
    next.token = "secret";
    next.attempt = 1;
    auto server = StoreServer::Start(next);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(*server);
  });
  auto client = Connect(options);
  restart.join();
  ASSERT_NE(client, nullptr);
  EXPECT_TRUE(client->Bye().ok());
  options.attempt = 0;
  EXPECT_THAT(Refusal(options), HasSubstr("belongs to attempt 0"));
}

TEST_F(StoreTest, AMemberThatVanishesIsAFailureForAll) {
  StartServer(2);
  auto a = Connect(Options(0, 2));
  auto b = Connect(Options(1, 2));
  std::thread vanish([&] {
    absl::SleepFor(absl::Milliseconds(50));
    b.reset();
  });
  auto result = a->Wait({std::string(kFailureKey)}, absl::Seconds(20));
  vanish.join();
  ASSERT_TRUE(result.ok()) << result.status();
  const RunFailure failure = RunFailureFromText(result->values[0]);
  EXPECT_THAT(failure.suspects, ElementsAre(1));
  EXPECT_THAT(failure.text, HasSubstr("rank 1 (pid "));
  EXPECT_THAT(failure.text, HasSubstr("vanished"));
  EXPECT_THAT(server_->members(), ElementsAre(0));
}

TEST_F(StoreTest, AGoodByeIsNoFailure) {
  StartServer(2);
  auto a = Connect(Options(0, 2));
  auto b = Connect(Options(1, 2));
  StoreClientOptions watcher = Options(1, 2);
  watcher.is_member = false;
  Connect(watcher).reset();  // the end of a watcher is none either
  ASSERT_TRUE(b->Bye().ok());
  b.reset();
  ASSERT_TRUE(a->Wait({LeftKey(1)}, absl::Seconds(20)).ok());
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(server_->failure().has_value());
  EXPECT_THAT(server_->members(), ElementsAre(0));
}

TEST_F(StoreTest, OnlyTheFirstFailureCounts) {
  StartServer(2);
  auto a = Connect(Options(0, 2));
  ASSERT_TRUE(a->Fail({{1}, "first\nline two"}).ok());
  ASSERT_TRUE(a->Fail({{0}, "second"}).ok());
  server_->Fail({{}, "third"});
  ASSERT_TRUE(server_->failure().has_value());
  EXPECT_EQ(server_->failure()->text, "first\nline two");
  EXPECT_THAT(server_->failure()->suspects, ElementsAre(1));
}

TEST_F(StoreTest, TheServersOwnReportReachesWaitingClients) {
  StartServer(1);
  auto a = Connect(Options(0, 1));
  std::thread report([&] {
    absl::SleepFor(absl::Milliseconds(50));
    server_->Fail({{}, "stop"});
  });
  auto result = a->Wait({std::string(kFailureKey)}, absl::Seconds(20));
  report.join();
  ASSERT_TRUE(result.ok()) << result.status();
  const RunFailure failure = RunFailureFromText(result->values[0]);
  EXPECT_EQ(failure.text, "stop");
  EXPECT_THAT(failure.suspects, IsEmpty());
}

TEST_F(StoreTest, ClosingTellsThoseWhoWait) {
  StartServer(1);
  auto a = Connect(Options(0, 1));
  std::thread close([&] {
    absl::SleepFor(absl::Milliseconds(50));
    server_.reset();
  });
  auto result = a->Wait({"never"}, absl::Seconds(20));
  close.join();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("was closed"));
  EXPECT_FALSE(a->Set("x", "y").ok());
}

TEST_F(StoreTest, OffTheLoopbackATokenIsDemanded) {
  for (const char* host : {"", "0.0.0.0", "192.0.2.1"}) {
    StoreServerOptions options;
    options.host = host;
    auto server = StoreServer::Start(options);
    EXPECT_EQ(ExitCodeOf(server.status()), ExitCode::kUsage) << host;
  }
}

// Those who hold connections and say nothing, or a byte now and then, keep
// nobody out, however many they are.
TEST_F(StoreTest, CrowdsThatSayNothingKeepNobodyOut) {
  StartServer(2);
  const MonotonicTime deadline = MonotonicTime::Now() + absl::Seconds(20);
  std::vector<Socket> crowd;
  for (int i = 0; i < 500; ++i) {
    auto socket = ConnectTo(server_->address(), deadline);
    ASSERT_TRUE(socket.ok()) << socket.status();
    if (i % 2 == 0) (void)socket->Send("\x40", deadline);
    crowd.push_back(*std::move(socket));
  }
  auto a = Connect(Options(0, 2));
  auto b = Connect(Options(1, 2));
  ASSERT_TRUE(a->Set("x", "y").ok());
  for (int i = 0; i < 300; ++i) {  // also later
    crowd.push_back(*ConnectTo(server_->address(), deadline));
  }
  EXPECT_EQ(**b->Get("x"), "y");
  EXPECT_FALSE(server_->failure().has_value());
}

TEST_F(StoreTest, OneGuessAConnection) {
  StartServer(1);
  const MonotonicTime deadline = MonotonicTime::Now() + absl::Seconds(20);
  auto socket = ConnectTo(server_->address(), deadline);
  ASSERT_TRUE(socket->Receive(24, deadline).ok());
  MessageWriter hello;
  hello.U8(static_cast<uint8_t>(StoreRequest::kHello)).I64(0).I64(1).I64(0);
  hello.U8(1).Text("").Text("nonce").Text("proof");
  ASSERT_TRUE(socket->Send(hello.Frame(), deadline).ok());
  std::string all;
  absl::Status end;
  while (end.ok()) {
    auto byte = socket->Receive(1, deadline);
    end = byte.status();
    if (byte.ok()) all += *byte;
  }
  EXPECT_TRUE(absl::IsOutOfRange(end)) << end;  // it was closed
  EXPECT_THAT(all, HasSubstr("does not have this run's token"));
}

// Who has listened to a rank that was let in, and says the same again, is not:
// each connection has a nonce of its own.
TEST_F(StoreTest, AReplayedHelloIsRefused) {
  StartServer(2);
  const MonotonicTime deadline = MonotonicTime::Now() + absl::Seconds(20);
  auto listener = Listen("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  // Between a client and the store: what the client says first.
  std::string hello;
  std::thread between([&] {
    Socket client(accept(listener->fd(), nullptr, nullptr));
    auto store = ConnectTo(server_->address(), deadline);
    const int64_t greeting = kStoreMagic.size() + kNonceBytes;
    (void)client.Send(*store->Receive(greeting, deadline), deadline);
    const std::string length = *client.Receive(4, deadline);
    hello = length + *client.Receive(FrameLength(length), deadline);
    (void)store->Send(hello, deadline);
    const std::string reply = *store->Receive(4, deadline);
    (void)client.Send(reply + *store->Receive(FrameLength(reply), deadline),
                      deadline);
    (void)store->Receive(1, deadline);  // until the client's end of it all
  });
  StoreClientOptions options = Options(0, 2);
  options.address = listener->local();
  auto client = StoreClient::Connect(options, deadline);
  EXPECT_TRUE(client.ok()) << client.status();

  auto replayed = ConnectTo(server_->address(), deadline);
  ASSERT_TRUE(
      replayed->Receive(kStoreMagic.size() + kNonceBytes, deadline).ok());
  ASSERT_TRUE(replayed->Send(hello, deadline).ok());
  const std::string length = *replayed->Receive(4, deadline);
  const auto reply = replayed->Receive(FrameLength(length), deadline);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(*reply, HasSubstr("does not have this run's token"));
  EXPECT_EQ(server_->members(), std::vector<int>({0}));
  server_.reset();  // ends the connections
  between.join();
}

// Rubbish, oversized frames and silence must not disturb the others.
TEST_F(StoreTest, SurvivesRubbish) {
  StartServer(1);
  const MonotonicTime deadline = MonotonicTime::Now() + absl::Seconds(20);
  for (const std::string& rubbish :
       {std::string(3, '\xff'), std::string(2000, '\xff'),
        std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x01\0\0\0\x02", 5),
        std::string("\x05\0\0\0\x01\xff\xff\xff\xff", 9)}) {
    auto socket = ConnectTo(server_->address(), deadline);
    ASSERT_TRUE(socket.ok()) << socket.status();
    ASSERT_TRUE(socket->Send(rubbish, deadline).ok());
  }
  auto silent = ConnectTo(server_->address(), deadline);
  auto a = Connect(Options(0, 1));
  ASSERT_TRUE(a->Set("x", "y").ok());
  EXPECT_EQ(**a->Get("x"), "y");
  EXPECT_FALSE(a->Set("big", std::string(2 << 20, 'x')).ok());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
