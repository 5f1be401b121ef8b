#include "runtime/rendezvous/meeting.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "gtest/gtest.h"
#include "runtime/rendezvous/run_watch.h"
#include "runtime/rendezvous/same_machine.h"
#include "runtime/rendezvous/token.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TmpDir() { return ::testing::TempDir(); }

MeetingOptions Options(int rank, int world_size, const std::string& job) {
  MeetingOptions options;
  options.place.rank = options.place.local_rank = rank;
  options.place.world_size = options.place.local_world_size = world_size;
  options.place.job_id = job;
  options.tmp_dir = TmpDir();
  options.timeout = absl::Seconds(30);
  return options;
}

// Joins ranks 0 .. `come` - 1 of `world_size`, each in a thread.
std::vector<absl::StatusOr<std::unique_ptr<Meeting>>> Join(
    int come, int world_size,
    const std::function<void(MeetingOptions&)>& change = {}) {
  std::vector<absl::StatusOr<std::unique_ptr<Meeting>>> all(come);
  std::vector<std::thread> threads;
  for (int r = 0; r < come; ++r) {
    threads.emplace_back([&, r] {
      MeetingOptions options = Options(
          r, world_size,
          ::testing::UnitTest::GetInstance()->current_test_info()->name());
      if (change) change(options);
      all[r] = Meeting::Join(options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all;
}

// Ends all together, as ranks do.
void End(std::vector<absl::StatusOr<std::unique_ptr<Meeting>>>& all) {
  std::vector<std::thread> threads;
  for (auto& one : all) {
    threads.emplace_back([&one] {
      if (one.ok()) one->reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int FreePort() { return Listen("127.0.0.1", 0)->local().port; }

// One of this machine that is not the loopback; empty if there is none.
std::string AddressOnANetwork() {
  std::string found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET,
              &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr,
              text, sizeof(text));
    if (!IsLoopback(text)) found = text;
  }
  freeifaddrs(list);
  return found;
}

TEST(Meeting, OnOneMachineWithoutAnAddress) {
  auto all = Join(3, 3);
  for (auto& one : all) {
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ((*one)->own_address(), "127.0.0.1");
    EXPECT_FALSE((*one)->token().empty());
  }
  ASSERT_TRUE((*all[2])->store().Set("x", "y").ok());
  EXPECT_EQ(**(*all[1])->store().Get("x"), "y");
  const MonotonicTime start = MonotonicTime::Now();
  End(all);
  EXPECT_LT(MonotonicTime::Now() - start, absl::Seconds(5));
}

TEST(Meeting, AtAnAddress) {
  const int port = FreePort();
  auto all = Join(2, 2, [&](MeetingOptions& options) {
    options.place.master = {"localhost", port};
    options.token = "t";
  });
  for (auto& one : all) ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*all[1])->master().port, port);
  End(all);
}

TEST(Meeting, AtAStoreThatTheLauncherServes) {
  StoreServerOptions server_options;
  server_options.host = "127.0.0.1";
  server_options.world_size = 2;
  auto server = StoreServer::Start(server_options);
  ASSERT_TRUE(server.ok());
  auto all = Join(2, 2, [&](MeetingOptions& options) {
    options.place.master = (*server)->address();
    options.place.master_served = true;
  });
  for (auto& one : all) ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT((*server)->members(), ElementsAre(0, 1));
  End(all);
  EXPECT_FALSE((*server)->failure().has_value());
}

// Without a secret, whoever can connect could be a rank.
TEST(Meeting, AtAnAddressOfThisMachineTheSecretIsInAPrivateFile) {
  const int port = FreePort();
  auto all = Join(2, 2, [&](MeetingOptions& options) {
    options.place.master = {"127.0.0.1", port};
  });
  for (auto& one : all) ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*all[1])->master().port, port);
  EXPECT_FALSE((*all[1])->token().empty());
  StoreClientOptions stranger;
  stranger.address = (*all[0])->master();
  stranger.world_size = 2;
  stranger.is_member = false;
  auto client =
      StoreClient::Connect(stranger, MonotonicTime::Now() + absl::Seconds(5));
  EXPECT_THAT(std::string(client.status().message()),
              HasSubstr("does not have this run's token"));
  End(all);
}

TEST(Meeting, RanksOfSeveralMachinesNeedAToken) {
  for (int rank : {0, 1}) {
    MeetingOptions options = Options(rank, 2, "");
    options.place.local_rank = 0;
    options.place.local_world_size = 1;
    options.place.master = {"192.0.2.1", 4000};
    auto meeting = Meeting::Join(options);
    EXPECT_EQ(ExitCodeOf(meeting.status()), ExitCode::kUsage);
    EXPECT_THAT(std::string(meeting.status().message()),
                HasSubstr("set HALFTONE_TOKEN"));
  }
  // Where the launcher did not say that all are here, an address decides.
  MeetingOptions options = Options(0, 2, "");
  options.place.local_size_is_known = false;
  options.place.master = {"192.0.2.1", 4000};
  EXPECT_EQ(ExitCodeOf(Meeting::Join(options).status()), ExitCode::kUsage);
}

// As torchrun's agent does with MASTER_PORT.
TEST(Meeting, BesideTheServerOfAnotherLauncher) {
  const auto agent = Listen("127.0.0.1", 0);
  const int port = agent->local().port;
  for (const char* token : {"", "given"}) {
    auto all = Join(3, 3, [&](MeetingOptions& options) {
      options.place.master = {"localhost", port};
      options.place.master_held = true;
      options.place.job_id = "none";
      options.token = token;
    });
    for (auto& one : all) ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_NE((*all[2])->master().port, port);
    End(all);
  }
}

TEST(Meeting, OfSeveralMachinesBesideTheServerOfAnotherLauncher) {
  const std::string own = AddressOnANetwork();
  if (own.empty()) GTEST_SKIP() << "no network, not even one's own address";
  const auto agent = Listen(own, 0);
  const int port = agent->local().port;
  const auto next = Listen(own, port + 1);  // says nothing
  auto all = Join(3, 3, [&](MeetingOptions& options) {
    options.place.local_rank = 0;
    options.place.local_world_size = 1;
    options.place.master = {own, port};
    options.place.master_held = true;
    options.token = "given";
  });
  for (auto& one : all) ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_GT((*all[2])->master().port, port + 1);
  // The named address alone.
  EXPECT_FALSE(ConnectTo({"127.0.0.1", (*all[0])->master().port},
                         MonotonicTime::Now() + absl::Milliseconds(100))
                   .ok());
  End(all);
}

TEST(Meeting, TellsWhoDidNotCome) {
  StoreServerOptions server_options;
  server_options.host = "127.0.0.1";
  server_options.world_size = 2;
  auto server = StoreServer::Start(server_options);
  MeetingOptions options = Options(0, 2, "");
  options.timeout = absl::Milliseconds(300);
  options.place.master = (*server)->address();
  options.place.master_served = true;
  EXPECT_FALSE(Meeting::Join(options).ok());
  ASSERT_TRUE((*server)->failure().has_value());
  EXPECT_THAT((*server)->failure()->suspects, ElementsAre(1));
}

TEST(ListenHost, IsTheNamedAddressAlone) {
  for (const char* host : {"127.0.0.1", "localhost", "::1", "192.0.2.1"}) {
    EXPECT_EQ(ListenHost(host), host);
  }
  // What others may know by another address than this machine does.
  EXPECT_EQ(ListenHost("no-such-name.invalid"), "");
}

TEST(Meeting, NamesTheRanksThatDoNotCome) {
  auto all = Join(2, 4, [](MeetingOptions& options) {
    options.timeout = absl::Milliseconds(500);
  });
  for (auto& one : all) {
    EXPECT_EQ(ExitCodeOf(one.status()), ExitCode::kCommunication);
    EXPECT_THAT(std::string(one.status().message()),
                HasSubstr("ranks 2, 3 of 4 did not arrive"));
  }
}

TEST(Meeting, ARankWithoutRankZeroSaysSo) {
  MeetingOptions options = Options(1, 2, "nobody serves this job");
  options.timeout = absl::Milliseconds(200);
  auto meeting = Meeting::Join(options);
  EXPECT_THAT(std::string(meeting.status().message()),
              HasSubstr("rank 1 of 2 did not find rank 0 on this machine"));
}

TEST(Meeting, AStaleFileDoesNoHarm) {
  const std::string job =
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  auto file = MeetingFile(TmpDir(), job);
  ASSERT_TRUE(file.ok()) << file.status();
  auto gone = Listen("127.0.0.1", 0);
  ASSERT_TRUE(WriteMeetingFile(*file, {gone->local(), "old"}).ok());
  gone->Close();
  auto all = Join(2, 2);
  for (auto& one : all) ASSERT_TRUE(one.ok()) << one.status();
  End(all);
  EXPECT_FALSE(ReadMeetingFile(*file).has_value());
}

TEST(Meeting, ManyRanksThatDoNotComeAreRanges) {
  auto all = Join(1, 1000, [](MeetingOptions& options) {
    options.timeout = absl::Milliseconds(300);
  });
  EXPECT_THAT(std::string(all[0].status().message()),
              HasSubstr("ranks 1 to 999 of 1000 did not arrive"));
}

// Rank 0 waits for one that does not come, and somebody ends it.
TEST(Meeting, ASignalLeavesNoFile) {
  const std::string job =
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto file = MeetingFile(TmpDir(), job);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    if (child == 0) {
      signal(number, SIG_DFL);
      (void)Meeting::Join(Options(0, 2, job));
      _exit(1);
    }
    for (int i = 0; i < 500 && !ReadMeetingFile(*file).has_value(); ++i) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_TRUE(ReadMeetingFile(*file).has_value());
    kill(child, number);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_NE(access(file->c_str(), F_OK), 0);
  }
}

TEST(Meeting, ARankThatDiesMeanwhileIsNamed) {
  StoreServerOptions server_options;
  server_options.host = "127.0.0.1";
  server_options.world_size = 3;
  auto server = StoreServer::Start(server_options);
  StoreClientOptions dying;
  dying.address = (*server)->address();
  dying.rank = 2;
  dying.world_size = 3;
  StoreClient::Connect(dying, MonotonicTime::Now() + absl::Seconds(10))
      ->reset();
  MeetingOptions options = Options(0, 3, "");
  options.place.master = (*server)->address();
  options.place.master_served = true;
  auto meeting = Meeting::Join(options);
  EXPECT_THAT(std::string(meeting.status().message()),
              HasSubstr("rank 2 (pid"));
}

TEST(SameMachine, TheDirectoryMustBePrivate) {
  const std::string base = TmpDir() + "/open";
  mkdir(base.c_str(), 0700);
  const std::string folder = absl::StrCat(base, "/halftone-", geteuid());
  mkdir(folder.c_str(), 0700);
  chmod(folder.c_str(), 0755);
  auto file = MeetingFile(base, "job");
  EXPECT_EQ(ExitCodeOf(file.status()), ExitCode::kCommunication);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("mode 0700"));
}

TEST(SameMachine, ANameThatIsTakenKeepsNobodyFromMeeting) {
  const std::string base = TmpDir() + "/taken";
  mkdir(base.c_str(), 0700);
  const std::string folder = absl::StrCat(base, "/halftone-", geteuid());
  ASSERT_EQ(symlink("/nowhere", folder.c_str()), 0);
  setenv("HOME", base.c_str(), 1);
  auto file = MeetingFile(base, "job");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(*file, HasSubstr(base + "/.halftone-meetings/meet-"));
}

TEST(SameMachine, TheLauncherIsTheAncestorWithoutTheVariable) {
  EXPECT_THAT(LauncherIdentity("HALFTONE_NO_SUCH_VARIABLE"),
              HasSubstr(absl::StrCat("pid ", getppid(), " ")));
}

TEST(Token, FromTheEnvironmentOrAPrivateFile) {
  EXPECT_EQ(NewToken().size(), 32u);
  EXPECT_NE(NewToken(), NewToken());
  EXPECT_EQ(*FindToken({}), "");
  EXPECT_EQ(*FindToken({{"HALFTONE_TOKEN", "abc"}}), "abc");
  const std::string path = TmpDir() + "/token";
  std::ofstream(path) << " secret\n";
  chmod(path.c_str(), 0644);
  auto token = FindToken({{"HALFTONE_TOKEN_FILE", path}});
  EXPECT_EQ(ExitCodeOf(token.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(token.status().message()), HasSubstr("chmod 600"));
  chmod(path.c_str(), 0600);
  EXPECT_EQ(*FindToken({{"HALFTONE_TOKEN_FILE", path}}), "secret");
  EXPECT_FALSE(ReadTokenFile(path + ".none").ok());
}

class RunWatchTest : public ::testing::Test {
 protected:
  RunWatchTest() {
    StoreServerOptions options;
    options.host = "127.0.0.1";
    server_ = *StoreServer::Start(options);
    store_ = Connect(true);
    watch_ = std::make_unique<RunWatch>(
        Connect(false), 0, -1,
        RunWatch::Callbacks{[this](const RunFailure& failure) {
                              std::lock_guard<std::mutex> lock(mutex_);
                              failure_ = failure.text;
                            },
                            [] { return "in all_reduce"; }});
  }
  std::unique_ptr<StoreClient> Connect(bool is_member) {
    StoreClientOptions options;
    options.address = server_->address();
    options.is_member = is_member;
    return *StoreClient::Connect(options,
                                 MonotonicTime::Now() + absl::Seconds(20));
  }
  std::string AwaitFailure() {
    for (int i = 0; i < 1000; ++i) {
      absl::SleepFor(absl::Milliseconds(5));
      std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_.empty()) return failure_;
    }
    return "";
  }

  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<StoreClient> store_;
  std::mutex mutex_;
  std::string failure_;
  std::unique_ptr<RunWatch> watch_;
};

TEST_F(RunWatchTest, TellsOfAFailure) {
  ASSERT_TRUE(store_->Fail({{0}, "disk full"}).ok());
  EXPECT_EQ(AwaitFailure(), "disk full");
}

TEST_F(RunWatchTest, AnswersAnInquiryAndWatchesOn) {
  ASSERT_TRUE(Inquire(*store_).ok());
  auto answer = store_->Wait({StatusKey(0)}, absl::Seconds(20));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->values, ElementsAre("in all_reduce"));
  ASSERT_TRUE(store_->Fail({{0}, "late"}).ok());
  EXPECT_EQ(AwaitFailure(), "late");
}

TEST_F(RunWatchTest, NoticesThatTheStoreIsGone) {
  server_.reset();
  // "was closed" to who waits by then, "is gone" to who comes later.
  EXPECT_THAT(AwaitFailure(), HasSubstr("the rendezvous at 127.0.0.1:"));
}

TEST_F(RunWatchTest, EndsWithoutACall) {
  watch_.reset();
  EXPECT_EQ(failure_, "");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
