// Whole runs among strangers, who connect to everything that the run's
// processes listen on, from before the ranks meet until the end, and say
// nothing, rubbish, or a byte now and then.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/rendezvous/socket.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;
using runtime::Socket;

constexpr char kHalftone[] = "tools/halftone";

std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> names;
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) names.push_back(entry->d_name);
  closedir(dir);
  return names;
}

// "socket:[123]" of all processes whose command has `mark`.
std::set<std::string> SocketsOf(const std::string& mark) {
  std::set<std::string> sockets;
  for (const std::string& pid : EntriesOf("/proc")) {
    const std::string folder = "/proc/" + pid;
    if (!absl::StrContains(ReadAll(folder + "/cmdline"), mark)) continue;
    for (const std::string& fd : EntriesOf(folder + "/fd")) {
      char link[64] = {};
      if (readlink(absl::StrCat(folder, "/fd/", fd).c_str(), link, 63) > 0) {
        sockets.insert(link);
      }
    }
  }
  return sockets;
}

// IPv4 addresses on which these processes listen.
std::vector<sockaddr_in> ListenersOf(const std::string& mark) {
  const std::set<std::string> sockets = SocketsOf(mark);
  std::vector<sockaddr_in> listeners;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    unsigned address = 0, port = 0, state = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(),
                    " %*d: %8X:%4X %*8X:%*4X %2X %*s %*s %*s %*d %*d %lu",
                    &address, &port, &state, &inode) != 4 ||
        state != 0x0A ||
        sockets.count(absl::StrCat("socket:[", inode, "]")) == 0) {
      continue;
    }
    sockaddr_in listener = {};
    listener.sin_family = AF_INET;
    listener.sin_addr.s_addr = address;
    listener.sin_port = htons(static_cast<uint16_t>(port));
    listeners.push_back(listener);
  }
  return listeners;
}

// Strangers of the processes whose command has `mark`, while it lives.
class Strangers {
 public:
  explicit Strangers(const std::string& mark)
      : mark_(mark), thread_([this] { Come(); }) {}
  ~Strangers() {
    over_ = true;
    thread_.join();
  }
  int came() const { return came_; }

 private:
  void Come() {
    const std::string words[] = {"",
                                 "\n",
                                 "GET / HTTP/1.0\r\n\r\n",
                                 std::string("\x10\0\0\0", 4),
                                 std::string(3000, '\xff'),
                                 "HTPEER02"};
    std::vector<Socket> held(600);
    for (int i = 0; !over_;) {
      for (const sockaddr_in& listener : ListenersOf(mark_)) {
        for (int k = 0; k < 10; ++k, ++i) {
          Socket one(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
          connect(one.fd(), reinterpret_cast<const sockaddr*>(&listener),
                  sizeof(listener));
          const std::string& word = words[i % 6];
          (void)!send(one.fd(), word.data(), word.size(), MSG_NOSIGNAL);
          held[i % held.size()] = std::move(one);
          ++came_;
        }
      }
      // Those who are slow.
      for (Socket& one : held) {
        if (one.open()) (void)!send(one.fd(), "x", 1, MSG_NOSIGNAL);
      }
      usleep(2000);
    }
  }

  const std::string mark_;
  std::atomic<bool> over_{false};
  std::atomic<int> came_{0};
  std::thread thread_;
};

std::vector<std::string> RunOf(const std::string& out) {
  return {"run",         "models/mnist_convnet.pbtxt",
          "--strategy",  "models/mnist_o1.pbtxt",
          "--data",      "idx:models/digits",
          "--out",       out,
          "--epochs",    "1",
          "--log-every", "1"};
}

// Losses by step.
std::vector<json> Losses(const std::string& out) {
  std::vector<json> losses;
  for (const auto line : absl::StrSplit(ReadAll(out + "/metrics.jsonl"), '\n',
                                        absl::SkipEmpty())) {
    const json event = json::parse(line);
    if (event["event"] == "step") losses.push_back(event["loss"]);
  }
  return losses;
}

Result RunAmong(const std::string& out, int* came) {
  std::vector<std::string> command = {kHalftone, "launch", "--ranks", "3"};
  for (const std::string& word : RunOf(out)) command.push_back(word);
  Strangers strangers(out);
  const Result result = Wait(Start("among-strangers", command, OwnVariables()));
  *came = strangers.came();
  return result;
}

TEST(Strangers, KeepNoRunFromItsResult) {
  const std::string quiet = NewPath("quiet");
  std::vector<std::string> command = {kHalftone, "launch", "--ranks", "3"};
  for (const std::string& word : RunOf(quiet)) command.push_back(word);
  const Result alone = RunProgram(command);
  ASSERT_EQ(alone.exit_code(), 0) << alone.err;
  for (int run = 0; run < 3; ++run) {
    const std::string out = NewPath("loud");
    int came = 0;
    const Result result = RunAmong(out, &came);
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    EXPECT_GT(came, 100);
    EXPECT_EQ(Losses(out), Losses(quiet));
  }
}

// `launch --nnodes` at a loopback address listens there alone.
TEST(Strangers, FindNothingOnOtherAddresses) {
  const std::string port = absl::StrCat(20000 + getpid() % 9000);
  const std::string out = NewPath("named");
  const Child node = Start(
      "named",
      {kHalftone, "launch", "--nnodes", "2", "--node-rank", "0", "--master",
       "127.0.0.1:" + port, "run", "models/mnist_convnet.pbtxt", "--strategy",
       "models/mnist_o1.pbtxt", "--data", "idx:models/digits", "--out", out},
      OwnVariables());
  std::vector<sockaddr_in> listeners;
  for (int i = 0; i < 1000 && listeners.empty(); ++i) {
    usleep(10000);
    listeners = ListenersOf(out);
  }
  EXPECT_FALSE(listeners.empty());
  for (const sockaddr_in& listener : listeners) {
    EXPECT_EQ(listener.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  }
  Signal(node.pid, SIGTERM);
  Signal(node.pid, SIGTERM);
  Wait(node);
}

}  // namespace
}  // namespace halftone
