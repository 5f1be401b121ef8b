#include "runtime/rendezvous/socket.h"

#include <sys/socket.h>

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

TEST(HostPort, Parses) {
  EXPECT_EQ(ToString(*ParseHostPort("--master", "node1:29500")), "node1:29500");
  EXPECT_EQ(ParseHostPort("--master", "[fe80::1]:80")->host, "fe80::1");
  EXPECT_EQ(ToString(*ParseHostPort("--master", "[fe80::1]:80")),
            "[fe80::1]:80");
  for (const char* bad :
       {"", "node1", ":5", "node1:", "node1:0", "n:65536", "n:5x", "[]:5"}) {
    auto parsed = ParseHostPort("--master", bad);
    EXPECT_EQ(ExitCodeOf(parsed.status()), ExitCode::kUsage) << bad;
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("--master: expected HOST:PORT"));
  }
}

TEST(HostPort, KnowsLoopback) {
  EXPECT_TRUE(IsLoopback("127.0.1.1"));
  EXPECT_TRUE(IsLoopback("::1"));
  EXPECT_TRUE(IsLoopback("127.1"));
  EXPECT_TRUE(IsLoopback("::ffff:127.0.0.1"));
  EXPECT_TRUE(IsLoopback("LocalHost"));
  EXPECT_FALSE(IsLoopback("10.0.0.1"));
  // Names that may be anybody's.
  EXPECT_FALSE(IsLoopback("127.example.com"));
  EXPECT_FALSE(IsLoopback(""));
}

// A name of the loopback is no reason to listen everywhere.
TEST(ListenHost, IsOneAddressWhereTheNameHasOne) {
  for (const char* host : {"localhost", "LOCALHOST", "127.0.0.1", "127.1"}) {
    const std::string where = ListenHost(host);
    ASSERT_NE(where, "") << host;
    auto listener = Listen(where, 0);
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_EQ(listener->local().host, "127.0.0.1") << host;
  }
  std::ifstream hosts("/etc/hosts");
  for (std::string line; std::getline(hosts, line);) {
    std::istringstream words(line);
    std::string address, name;
    words >> address;
    while (address == "127.0.0.1" && words >> name && name[0] != '#') {
      EXPECT_TRUE(IsLoopback(ListenHost(name))) << name;
    }
  }
  EXPECT_EQ(ListenHost("no-such-host.invalid"), "");
}

TEST(Socket, UnknownHostIsNamed) {
  auto socket = ConnectTo({"no-such-host.invalid", 1},
                          MonotonicTime::Now() + absl::Milliseconds(10));
  EXPECT_THAT(std::string(socket.status().message()),
              HasSubstr("no-such-host.invalid"));
}

TEST(Socket, ReceiveKeepsItsDeadline) {
  auto listener = Listen("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  auto client =
      ConnectTo(listener->local(), MonotonicTime::Now() + absl::Seconds(10));
  ASSERT_TRUE(client.ok()) << client.status();
  const MonotonicTime start = MonotonicTime::Now();
  auto got = client->Receive(1, start + absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsDeadlineExceeded(got.status())) << got.status();
  EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(5));
  Socket server(accept(listener->fd(), nullptr, nullptr));
  server.Close();
  got = client->Receive(1, MonotonicTime::Now() + absl::Seconds(10));
  EXPECT_TRUE(absl::IsOutOfRange(got.status())) << got.status();
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
