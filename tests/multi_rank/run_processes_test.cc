// The whole tool on several processes: what one kills, stops or misstarts, and
// that training goes on bit for bit.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/device/host_info.h"
#include "runtime/rendezvous/socket.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr char kHalftone[] = "tools/halftone";
constexpr char kData[] = "idx:models/digits";

std::string Compile(const std::string& level,
                    const std::vector<std::string>& more = {}) {
  const std::string path = NewPath("model") + ".htc";
  std::vector<std::string> command = {kHalftone,
                                      "compile",
                                      "models/mnist_convnet.pbtxt",
                                      "--strategy",
                                      "models/mnist_o1.pbtxt",
                                      "--level",
                                      level,
                                      "-o",
                                      path};
  command.insert(command.end(), more.begin(), more.end());
  const Result compiled = RunProgram(command);
  EXPECT_EQ(compiled.exit_code(), 0) << compiled.err;
  return path;
}

// `halftone launch --ranks N run ...`
std::vector<std::string> Launch(int ranks, const std::string& model,
                                const std::string& out,
                                const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {
      kHalftone, "launch", "--ranks",     absl::StrCat(ranks),
      "run",     model,    "--data",      kData,
      "--out",   out,      "--log-every", "1"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

void WaitForStep(const std::string& out, int step) {
  for (int tries = 0; tries < 3000; ++tries) {
    if (ReadAll(out + "/metrics.jsonl")
            .find(absl::StrCat("\"step\":", step, ",")) != std::string::npos) {
      return;
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  FAIL() << out << ": step " << step << " was never logged";
}

// The pids of `halftone run` processes whose --out is `out`.
std::vector<pid_t> RankPids(const std::string& out) {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::string command = ReadAll(entry.path() / "cmdline");
    if (command.find(out) != std::string::npos &&
        command.find("launch") == std::string::npos) {
      pids.push_back(pid);
    }
  }
  return pids;
}

// The cores that a process may run on; this one: pid 0.
std::vector<int> CoresOf(pid_t pid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(pid, sizeof(set), &set), 0) << "pid " << pid;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// This process and those that it starts, while it lives.
class OnCores {
 public:
  explicit OnCores(const std::vector<int>& cores) : before_(CoresOf(0)) {
    Set(cores);
  }
  ~OnCores() { Set(before_); }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  static void Set(const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core : cores) CPU_SET(core, &set);
    EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
  }
  const std::vector<int> before_;
};

struct Case {
  const char* level;
  int ranks;
  const char* reduce = "any_order";
};
class KilledRun : public ::testing::TestWithParam<Case> {};

TEST_P(KilledRun, ResumesBitForBit) {
  const auto [level, ranks, reduce] = GetParam();
  const std::string model =
      Compile(level, {"--set", absl::StrCat("dist.reduce=", reduce)});
  const std::vector<std::string> flags = {"--checkpoint-every", "7", "--epochs",
                                          "2"};
  const std::string whole = NewPath("whole"), cut = NewPath("cut");
  const Result undisturbed = RunProgram(Launch(ranks, model, whole, flags));
  ASSERT_EQ(undisturbed.exit_code(), 0) << undisturbed.err;

  const Child run =
      Start("killed", Launch(ranks, model, cut, flags), OwnVariables());
  WaitForStep(cut, 17);
  const std::vector<pid_t> pids = RankPids(cut);
  ASSERT_EQ(pids.size(), static_cast<size_t>(ranks));
  Signal(pids.back(), SIGKILL);
  const Result killed = Wait(run);
  ASSERT_EQ(killed.exit_code(), 128 + SIGKILL) << killed.err;
  const json failure = json::parse(ReadAll(cut + "/failure.json"));
  EXPECT_THAT(failure.dump(), HasSubstr(absl::StrCat("\"pid\":", pids.back())));

  std::vector<std::string> again = flags;
  again.push_back("--resume");
  const Result resumed = RunProgram(Launch(ranks, model, cut, again));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.out + resumed.err, HasSubstr("bit for bit"));
  EXPECT_THAT(resumed.err, HasSubstr(cut + "/logs/attempt-1/rank-"));
  EXPECT_FALSE(std::filesystem::exists(cut + "/failure.json"));
  const std::vector<json> expected = Metrics(whole), found = Metrics(cut);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i]);
}

INSTANTIATE_TEST_SUITE_P(Levels, KilledRun,
                         ::testing::Values(Case{"O1", 1}, Case{"O1", 2},
                                           Case{"O2", 1}, Case{"O2", 2},
                                           Case{"O1", 4, "exact_order"}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.level, "_ranks_",
                                               info.param.ranks, "_",
                                               info.param.reduce);
                         });

// What a launcher did for a run stands in the run's own log.
TEST(RestartedRun, SaysWhy) {
  const std::string out = NewPath("restarted");
  std::vector<std::string> command = Launch(
      2, Compile("O1"), out, {"--checkpoint-every", "7", "--epochs", "20"});
  command.insert(command.begin() + 2, {"--max-restarts", "1"});
  const Child run = Start("restarted", command, OwnVariables());
  WaitForStep(out, 17);
  const std::vector<pid_t> pids = RankPids(out);
  ASSERT_EQ(pids.size(), 2u);
  Signal(pids.back(), SIGKILL);
  const Result result = Wait(run);
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  std::vector<std::string> kinds;
  json restart, last;
  const std::string metrics = ReadAll(out + "/metrics.jsonl");
  for (const absl::string_view line :
       absl::StrSplit(metrics, '\n', absl::SkipEmpty())) {
    last = json::parse(line.begin(), line.end());
    const std::string kind = last["event"];
    if (kind == "restart") restart = last;
    // A rank whose peer is killed ends with an error, and may or may not get to
    // say so before the launcher stops it.
    if (kind == "end" && last["exit"] != 0) continue;
    if (kind != "step" && kind != "eval") kinds.push_back(kind);
  }
  const int64_t from = restart["step"];
  EXPECT_EQ(from % 7, 0);
  EXPECT_EQ(restart["attempt"], 1);
  EXPECT_GE(restart["rank"], 0);
  EXPECT_GE(restart["failed_step"], from);
  EXPECT_THAT(restart["cause"].get<std::string>(), HasSubstr("SIGKILL"));
  EXPECT_EQ(kinds.front(), "run_start");
  const auto restarted = std::find(kinds.begin(), kinds.end(), "restart");
  ASSERT_GT(restarted - kinds.begin(), 1);
  EXPECT_EQ(*(restarted - 1), "run_start");
  // Each seventh step up to `from` had a checkpoint; that the last was written
  // may not have been said when the rank was killed.
  const int64_t said = std::count(kinds.begin(), restarted, "checkpoint");
  EXPECT_EQ(said, restarted - kinds.begin() - 2);
  EXPECT_THAT(said, ::testing::AnyOf(from / 7 - 1, from / 7));
  EXPECT_EQ(last["event"], "end");
  EXPECT_EQ(last["exit"], 0);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "end"), 1);
}

// One, two and four processes leave the same, each with other threads, and what
// four have begun two end.
TEST(VirtualShards, AreTheSameOnAnyNumberOfProcesses) {
  const std::string model =
      Compile("O1", {"--set", "dist.virtual_shards=8", "--set",
                     "dist.sync_batch_norm=false"});
  const std::vector<std::string> flags = {"--checkpoint-every", "7", "--epochs",
                                          "2"};
  const auto state = [](const std::string& out) {
    return ReadAll(out + "/ckpt/step-46/state.safetensors");
  };
  const std::string one = NewPath("one");
  const Result alone = RunProgram(Launch(1, model, one, flags));
  ASSERT_EQ(alone.exit_code(), 0) << alone.err;
  ASSERT_FALSE(state(one).empty());
  const std::string two = NewPath("two");
  EXPECT_EQ(RunProgram(Launch(2, model, two, flags)).exit_code(), 0);
  EXPECT_TRUE(state(one) == state(two));
  EXPECT_EQ(Metrics(one), Metrics(two));

  const std::string cut = NewPath("cut");
  const Child run =
      Start("killed", Launch(4, model, cut, flags), OwnVariables());
  WaitForStep(cut, 17);
  Signal(RankPids(cut).back(), SIGKILL);
  ASSERT_EQ(Wait(run).exit_code(), 128 + SIGKILL);
  std::vector<std::string> again = flags;
  again.push_back("--resume");
  const Result resumed = RunProgram(Launch(2, model, cut, again));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.out + resumed.err,
              HasSubstr("2 ranks: bit for bit, 8 virtual shards"));
  EXPECT_TRUE(state(one) == state(cut));
  EXPECT_EQ(Metrics(one), Metrics(cut));
}

// After an epoch on ranks that are threads, and on processes.
void ExpectSameState(int ranks, const std::string& by_threads,
                     const std::string& by_processes) {
  const std::vector<std::string> flags = {"--epochs", "1"};
  const std::string threads = NewPath("threads"), shared = NewPath("shared");
  std::vector<std::string> command = {
      kHalftone, "run", by_threads, "--ranks", absl::StrCat(ranks),
      "--data",  kData, "--out",    threads};
  command.insert(command.end(), flags.begin(), flags.end());
  const Result in_process = RunProgram(command);
  ASSERT_EQ(in_process.exit_code(), 0) << in_process.err;
  const Result processes =
      RunProgram(Launch(ranks, by_processes, shared, flags));
  ASSERT_EQ(processes.exit_code(), 0) << processes.err;
  const auto state = [](const std::string& out) {
    return ReadAll(out + "/ckpt/step-23/state.safetensors");
  };
  ASSERT_FALSE(state(threads).empty());
  EXPECT_TRUE(state(threads) == state(shared));
}

// Neither how ranks talk to each other nor buckets change a bit.
TEST(ExactOrder, IsThatOfThreadsAndOfProcesses) {
  const std::string exact = "dist.reduce=exact_order";
  ExpectSameState(2, Compile("O1", {"--set", exact}),
                  Compile("O1", {"--set", exact, "--set",
                                 "dist.first_bucket_size_in_MB=0.001"}));
}

TEST(SyncBatchNormGroups, AreThoseOfThreadsAndOfProcesses) {
  const std::string model =
      Compile("O1", {"--set", "dist.sync_batch_norm_group_size=2"});
  ExpectSameState(4, model, model);
  for (const std::vector<std::string>& command :
       {Launch(3, model, NewPath("three")),
        std::vector<std::string>{kHalftone, "plan", model, "--ranks", "3"}}) {
    const Result refused = RunProgram(command);
    EXPECT_EQ(refused.exit_code(), 2) << refused.err;
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("dist.sync_batch_norm_group_size 2"),
                      HasSubstr("found 3")));
  }
}

TEST(StoppedRun, SigtermWritesACheckpointAndEndsWith143) {
  const std::string model = Compile("O1");
  const std::string out = NewPath("stopped");
  const Child run = Start("stopped", Launch(2, model, out, {"--epochs", "200"}),
                          OwnVariables());
  WaitForStep(out, 30);
  Signal(run.pid, SIGTERM);
  const Result stopped = Wait(run);
  EXPECT_EQ(stopped.exit_code(), 128 + SIGTERM) << stopped.err;
  const json summary = json::parse(ReadAll(out + "/summary.json"));
  const int64_t steps = summary["steps_attempted"];
  EXPECT_GE(steps, 30);
  EXPECT_EQ(RunProgram({kHalftone, "ckpt", "verify",
                        absl::StrCat(out, "/ckpt/step-", steps)})
                .exit_code(),
            0);
}

// A rank that saves as it was asked to has not failed.
TEST(StoppedRun, SigtermAtARankEndsTheRun) {
  const std::string out = NewPath("at_rank");
  std::vector<std::string> command =
      Launch(2, Compile("O1"), out, {"--epochs", "1000"});
  const auto verb = std::find(command.begin(), command.end(), "launch");
  command.insert(verb + 1, {"--max-restarts", "2"});
  const Child run = Start("at_rank", command, OwnVariables());
  WaitForStep(out, 5);
  Signal(RankPids(out)[1], SIGTERM);
  const Result result = Wait(run);
  EXPECT_EQ(result.exit_code(), 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("restart")));
}

// Launcher and ranks at once, as process managers do, and the launcher twice,
// as `timeout` does: one request.
TEST(StoppedRun, WhatIsSignalledAtOnceIsOneRequest) {
  const std::string out = NewPath("at_once");
  const Child run =
      Start("at_once", Launch(2, Compile("O1"), out, {"--epochs", "1000"}),
            OwnVariables());
  WaitForStep(out, 5);
  for (pid_t pid : RankPids(out)) Signal(pid, SIGTERM);
  Signal(run.pid, SIGTERM);
  Signal(run.pid, SIGTERM);
  const Result result = Wait(run);
  EXPECT_EQ(result.exit_code(), 128 + SIGTERM) << result.err;
  EXPECT_FALSE(std::filesystem::is_empty(out + "/ckpt"));
  const Result sound = RunProgram({kHalftone, "ckpt", "verify", out});
  EXPECT_EQ(sound.exit_code(), 0) << sound.err;
}

TEST(StoppedRun, AnEvalThatWasDueIsMadeWhenItGoesOn) {
  const std::string model = Compile("O1"), out = NewPath("due");
  std::vector<std::string> command = {kHalftone, "run",
                                      model,     "--data",
                                      kData,     "--out",
                                      out,       "--epochs",
                                      "3",       "--log-every",
                                      "1",       "--eval-every",
                                      "1",       "--checkpoint-every",
                                      "never"};
  const Child run = Start("due", command, OwnVariables());
  WaitForStep(out, 9);
  Signal(run.pid, SIGTERM);
  ASSERT_EQ(Wait(run).exit_code(), 128 + SIGTERM);
  command.push_back("--resume");
  const Result resumed = RunProgram(command);
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err;
  std::vector<int> evals;
  for (absl::string_view line :
       absl::StrSplit(ReadAll(out + "/metrics.jsonl"), '\n')) {
    if (line.empty()) continue;
    const json event = json::parse(line);
    if (event["event"] == "eval") evals.push_back(event["step"]);
  }
  std::vector<int> each(evals.empty() ? 0 : evals.back());
  std::iota(each.begin(), each.end(), 1);
  EXPECT_GT(each.size(), 23u);
  EXPECT_EQ(evals, each);
}

TEST(LaunchedRanks, OneCoreEachWhereThereAreAsMany) {
  std::vector<int> cores = CoresOf(0);
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  cores.resize(2);
  const OnCores two(cores);
  if (runtime::UsableCores() != 2) GTEST_SKIP() << "a quota of CPU time";
  const std::string out = NewPath("cores");
  std::map<std::string, std::string> env = OwnVariables();
  env.erase("OMP_NUM_THREADS");
  const Child run =
      Start("cores", Launch(2, Compile("O1"), out, {"--epochs", "2"}), env);
  WaitForStep(out, 5);
  std::vector<std::vector<int>> found;
  for (pid_t pid : RankPids(out)) found.push_back(CoresOf(pid));
  EXPECT_THAT(found, UnorderedElementsAre(ElementsAre(cores[0]),
                                          ElementsAre(cores[1])));
  const Result result = Wait(run);
  EXPECT_EQ(result.exit_code(), 0) << result.err;
}

TEST(StartedRun, ADirectoryThatHoldsARunIsRefused) {
  const std::string model = Compile("O1");
  const std::string out = NewPath("refused");
  ASSERT_EQ(RunProgram(Launch(1, model, out, {"--epochs", "1"})).exit_code(),
            0);
  const Result again = RunProgram(Launch(1, model, out, {"--epochs", "1"}));
  EXPECT_EQ(again.exit_code(), 2);
  EXPECT_THAT(again.err, AllOf(HasSubstr("holds step 23"),
                               HasSubstr("add --resume or another --out")));
}

// The same `run`, with no launcher of ours.
std::map<std::string, std::string> Torchrun(int rank, int ranks, int port) {
  std::map<std::string, std::string> env = OwnVariables();
  env["RANK"] = env["LOCAL_RANK"] = absl::StrCat(rank);
  env["WORLD_SIZE"] = env["LOCAL_WORLD_SIZE"] = absl::StrCat(ranks);
  env["MASTER_ADDR"] = "127.0.0.1";
  env["MASTER_PORT"] = absl::StrCat(port);
  return env;
}

int FreePort() { return runtime::Listen("127.0.0.1", 0)->local().port; }

std::vector<std::string> RunCommand(const std::string& model,
                                    const std::string& out) {
  return {kHalftone, "run",         model, "--data",
          kData,     "--out",       out,   "--epochs",
          "1",       "--log-every", "1",   "--connect-timeout",
          "3",       "--timeout",   "20"};
}

TEST(OtherLaunchers, GiveTheSameNumbers) {
  const std::string model = Compile("O1");
  const std::string ours = NewPath("ours"), torch = NewPath("torch"),
                    mpi = NewPath("mpi"), threads = NewPath("threads");
  ASSERT_EQ(RunProgram(Launch(2, model, ours, {"--epochs", "1"})).exit_code(),
            0);
  const int port = FreePort();
  const Child first =
      Start("torch-0", RunCommand(model, torch), Torchrun(0, 2, port));
  const Child second =
      Start("torch-1", RunCommand(model, torch), Torchrun(1, 2, port));
  const Result one = Wait(first), two = Wait(second);
  ASSERT_EQ(one.exit_code(), 0) << one.err;
  ASSERT_EQ(two.exit_code(), 0) << two.err;
  std::vector<std::string> in_process = RunCommand(model, threads);
  in_process.insert(in_process.end(), {"--ranks", "2"});
  const Result threaded = RunProgram(in_process);
  ASSERT_EQ(threaded.exit_code(), 0) << threaded.err;
  EXPECT_EQ(Metrics(torch), Metrics(ours));
  EXPECT_EQ(Metrics(threads), Metrics(ours));
  if (access("/usr/bin/mpirun", X_OK) != 0) GTEST_SKIP() << "no mpirun here";
  std::vector<std::string> mpirun = {"/usr/bin/mpirun", "--allow-run-as-root",
                                     "--oversubscribe", "-n", "2"};
  for (const std::string& word : RunCommand(model, mpi)) mpirun.push_back(word);
  const Result by_mpi = RunProgram(mpirun);
  ASSERT_EQ(by_mpi.exit_code(), 0) << by_mpi.err;
  EXPECT_EQ(Metrics(mpi), Metrics(ours));
}

TEST(OtherLaunchers, ARankThatNeverArrivesIsNamed) {
  const std::string model = Compile("O1");
  const Result alone = Wait(Start("alone", RunCommand(model, NewPath("alone")),
                                  Torchrun(0, 2, FreePort())));
  EXPECT_EQ(alone.exit_code(), 7);
  EXPECT_THAT(alone.err, HasSubstr("rank 1"));
}

TEST(OtherLaunchers, RanksWithDifferentModelsAreRefused) {
  const std::string one = Compile("O1"), other = Compile("O2");
  const int port = FreePort();
  const std::string out = NewPath("different");
  const Child first = Start("one", RunCommand(one, out), Torchrun(0, 2, port));
  const Child second =
      Start("other", RunCommand(other, out), Torchrun(1, 2, port));
  for (const Child& child : {first, second}) {
    const Result result = Wait(child);
    EXPECT_EQ(result.exit_code(), 7) << result.err;
    EXPECT_THAT(result.err, HasSubstr("compiled model"));
  }
}

TEST(OtherLaunchers, APortInUseIsNamed) {
  const auto taken = runtime::Listen("127.0.0.1", 0);
  const int port = taken->local().port;
  const Result result = Wait(Start(
      "taken",
      {kHalftone, "launch", "--ranks", "2", "--master",
       absl::StrCat("127.0.0.1:", port), "run", Compile("O1"), "--data", kData},
      OwnVariables()));
  EXPECT_EQ(result.exit_code(), 7) << result.err;
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat(port)));
}

}  // namespace
}  // namespace halftone
