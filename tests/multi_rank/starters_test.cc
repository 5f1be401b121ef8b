// Ranks that the real launchers of others start, and programs of others under
// ours. A launcher is looked for in PATH or in the variable that a test names;
// where there is none, the test is skipped and says so.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/programs.h"
#include "tests/support/run_files.h"
#include "tests/support/same_training.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

// The starter runs two ranks, which train as ours do.
void ExpectSameTraining(const Words& starter) {
  const std::string out = NewPath("theirs");
  const Result result = RunProgram(Join(starter, RunOf(out)));
  ASSERT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_EQ(Metrics(out), MetricsOfOurs());
}

class Torchrun : public ::testing::Test {
 protected:
  void SetUp() override {
    torchrun_ = FindProgram("HALFTONE_TORCHRUN", "torchrun");
    if (torchrun_.empty()) {
      GTEST_SKIP() << "no torchrun in PATH or in HALFTONE_TORCHRUN";
    }
  }
  Words Start(const Words& flags) const {
    return Join(Join({torchrun_}, flags), {"--no-python"});
  }

  std::string torchrun_;
};

TEST_F(Torchrun, Standalone) {
  ExpectSameTraining(Start({"--standalone", "--nproc-per-node=2"}));
}

TEST_F(Torchrun, Static) {
  ExpectSameTraining(
      Start({"--nproc-per-node=2", "--master-addr=127.0.0.1",
             absl::StrCat("--master-port=", 20000 + getpid() % 9000)}));
}

TEST_F(Torchrun, C10d) {
  ExpectSameTraining(
      Start({"--nnodes=1", "--nproc-per-node=2", "--rdzv-backend=c10d",
             "--rdzv-endpoint=localhost:0"}));
}

// Two agents, as on two machines. What they tell of each other decides
// whether the ranks need a secret; with one they meet either way.
TEST_F(Torchrun, TwoAgents) {
  const std::string port = absl::StrCat(11000 + getpid() % 9000);
  std::map<std::string, std::string> env = OwnVariables();
  env["HALFTONE_TOKEN"] = "of the test";
  const std::string out = NewPath("agents");
  Words command =
      Join(Start({"--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d",
                  "--rdzv-id=pair",
                  absl::StrCat("--rdzv-endpoint=localhost:", port)}),
           RunOf(out));
  const Child one = halftone::Start("agent-1", command, env);
  const Child two = halftone::Start("agent-2", command, env);
  const Result first = Wait(one), second = Wait(two);
  ASSERT_EQ(first.exit_code(), 0) << first.err;
  ASSERT_EQ(second.exit_code(), 0) << second.err;
  EXPECT_EQ(Metrics(out), MetricsOfOurs());
}

TEST_F(Torchrun, ARankThatDiesIsStartedAgain) {
  const std::string out = NewPath("again");
  const std::string script = NewPath("die-once.sh");
  std::ofstream(script)
      << "#!/bin/sh\n"
      << "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exec \"$@\" "
         "--resume\n"
      << "[ $RANK = 0 ] && exec \"$@\"\nsleep 1; kill -9 $$\n";
  chmod(script.c_str(), 0700);
  const Result result = RunProgram(
      Join(Start({"--standalone", "--nproc-per-node=2", "--max-restarts=1"}),
           Join({script}, RunOf(out, {"--connect-timeout", "60"}))));
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_EQ(Metrics(out), MetricsOfOurs());
}

TEST(Mpirun, TwoRanks) {
  const std::string mpirun = FindProgram("HALFTONE_MPIRUN", "mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun in PATH or in HALFTONE_MPIRUN";
  ExpectSameTraining(
      {mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2"});
}

// On the cluster that is here, if there is one.
TEST(Srun, TwoRanks) {
  const std::string srun = FindProgram("HALFTONE_SRUN", "srun");
  if (srun.empty()) GTEST_SKIP() << "no srun in PATH or in HALFTONE_SRUN";
  const Result tried = RunProgram(
      {"/usr/bin/timeout", "20", srun, "-n", "2", "--overcommit", "true"});
  if (tried.exit_code() != 0) GTEST_SKIP() << "srun: no cluster: " << tried.err;
  ExpectSameTraining({srun, "-n", "2", "--overcommit"});
}

TEST(PaddleLaunch, TwoRanks) {
  const std::string python = FindPython("HALFTONE_PADDLE_PYTHON", "paddle");
  if (python.empty()) {
    GTEST_SKIP() << "no paddle for python3 or HALFTONE_PADDLE_PYTHON";
  }
  // It starts Python programs alone.
  const std::string script = NewPath("exec") + ".py";
  std::ofstream(script) << "import os, sys\nos.execv(sys.argv[1], "
                           "sys.argv[1:])\n";
  // Set and empty, it stands for one GPU there.
  ExpectSameTraining({"/usr/bin/env", "-u", "CUDA_VISIBLE_DEVICES", python,
                      "-m", "paddle.distributed.launch", "--nproc_per_node",
                      "2", "--log_dir", NewPath("paddle"), script});
}

// The other way round: a script of PyTorch under our launcher.
TEST(LaunchedProgram, OfPyTorchFindsItsPeers) {
  const std::string python = FindPython("HALFTONE_TORCH_PYTHON", "torch");
  if (python.empty()) {
    GTEST_SKIP() << "no torch for python3 or HALFTONE_TORCH_PYTHON";
  }
  const std::string script = NewPath("train.py");
  std::ofstream(script)
      << "import sys, torch, torch.distributed as d\n"
         "d.init_process_group('gloo')\n"
         "x = torch.tensor([d.get_rank() + 1.0])\n"
         "d.all_reduce(x)\n"
         "print('sum', x.item(), sys.argv[1:], flush=True)\n"
         "d.destroy_process_group()\n"
         "sys.exit(5 if '--fail' in sys.argv and x.item() else 0)\n";
  const Words launch = {Halftone(),      "launch", "--ranks", "3",  "--log-dir",
                        NewPath("logs"), "--tee",  "2",       "--", python,
                        script,          "--out",  "x",       "--"};
  const Result good = RunProgram(launch);
  EXPECT_EQ(good.exit_code(), 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("sum 6.0 ['--out', 'x', '--']\n"));
  EXPECT_THAT(good.out, HasSubstr("[2] sum 6.0 ["));
  EXPECT_EQ(RunProgram(Join(launch, {"--fail"})).exit_code(), 5);
}

TEST(LaunchedProgram, OfPaddleFindsItsPeers) {
  const std::string python = FindPython("HALFTONE_PADDLE_PYTHON", "paddle");
  if (python.empty()) {
    GTEST_SKIP() << "no paddle for python3 or HALFTONE_PADDLE_PYTHON";
  }
  const std::string script = NewPath("train.py");
  std::ofstream(script) << "import paddle, paddle.distributed as d\n"
                           "d.init_parallel_env()\n"
                           "x = paddle.to_tensor([d.get_rank() + 1.0])\n"
                           "d.all_reduce(x)\n"
                           "print('sum', x.item(), flush=True)\n";
  const Result result =
      RunProgram({Halftone(), "launch", "--ranks", "2", "--log-dir",
                  NewPath("logs"), "--", python, script});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("sum 3.0"));
}

TEST(LaunchedProgram, AnyCommand) {
  const std::string logs = NewPath("logs");
  const Result result = RunProgram(
      {Halftone(), "launch", "--ranks", "2", "--log-dir", logs, "--", "sh",
       "-c", "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR; exit $RANK"});
  EXPECT_EQ(result.exit_code(), 1);
  EXPECT_EQ(result.out, "rank 0 of 2 at 127.0.0.1\n");
  EXPECT_EQ(ReadAll(logs + "/attempt-0/rank-1.out"),
            "rank 1 of 2 at 127.0.0.1\n");
  EXPECT_THAT(result.err, HasSubstr("rank 1 failed: pid "));
  EXPECT_EQ(RunProgram({Halftone(), "launch", "--ranks", "2", "--log-dir", logs,
                        "--", "sh", "-c", "kill -TERM $$"})
                .exit_code(),
            128 + SIGTERM);
}

// Behind -- or not, it is our own verb, which keeps its logs in --out.
TEST(LaunchedProgram, OurOwnByItsPath) {
  const std::string out = NewPath("path");
  const Result result = RunProgram(
      Join({Halftone(), "launch", "--ranks", "2", "--"}, RunOf(out)));
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_EQ(Metrics(out), MetricsOfOurs());
  EXPECT_EQ(access((out + "/logs/attempt-0/rank-1.out").c_str(), F_OK), 0);
}

// What torchrun's and paddle.distributed.launch's users have in their scripts.
TEST(LaunchedProgram, FlagsOfOtherLaunchers) {
  const Result result = RunProgram({Halftone(),
                                    "launch",
                                    "--nnodes=1:1",
                                    "--nproc_per_node=2",
                                    "--rdzv-backend=c10d",
                                    "--rdzv-endpoint",
                                    "localhost:0",
                                    "--rdzv_id=7",
                                    "--job_id",
                                    "job",
                                    "--max_restarts=0",
                                    "--role=trainer",
                                    "-r",
                                    "3",
                                    "--log-dir",
                                    NewPath("logs"),
                                    "--",
                                    "sh",
                                    "-c",
                                    "echo $WORLD_SIZE"});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_EQ(result.out, "2\n");
  EXPECT_THAT(result.err, HasSubstr("--job-id: accepted and ignored"));
}

// The line that node 0 prints does for node 1 what it says, and tells nobody
// the secret.
TEST(LaunchedProgram, TheLineForTheOtherNode) {
  const std::string logs = NewPath("logs");
  const std::string port = absl::StrCat(20000 + getpid() % 9000);
  const Child node0 =
      Start("node-0",
            {Halftone(), "launch", "--nnodes", "2", "--node-rank", "0",
             "--master", "127.0.0.1:" + port, "--log-dir", logs, "--", "sh",
             "-c", "echo rank $RANK of $WORLD_SIZE, $PADDLE_TRAINER_ENDPOINTS"},
            OwnVariables());
  std::string line;
  for (int i = 0; i < 3000 && line.empty(); ++i) {
    for (const auto text : absl::StrSplit(ReadAll(node0.err), '\n')) {
      if (absl::StrContains(text, " launch --nnodes 2 --node-rank 1 ")) {
        line = std::string(text);
      }
    }
    if (line.empty()) usleep(10000);
  }
  const std::string token = ReadAll(logs + "/token");
  ASSERT_GT(token.size(), 30u);
  const Result node1 =
      RunProgram({"/bin/sh", "-c",
                  absl::StrCat(line.substr(0, line.find(" -- ")), " --log-dir ",
                               logs, "-1", line.substr(line.find(" -- ")))});
  const Result first = Wait(node0);
  EXPECT_EQ(node1.exit_code(), 0) << line << node1.err;
  EXPECT_EQ(first.exit_code(), 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("rank 0 of 2, 127.0.0.1:"));
  EXPECT_THAT(first.err, Not(HasSubstr(token.substr(0, 30))));
  EXPECT_NE(access((logs + "/token").c_str(), F_OK), 0);
  const std::string other = ReadAll(logs + "-1/attempt-0/rank-1.out");
  EXPECT_EQ(other.substr(7), first.out.substr(7));
}

TEST(Names, RanksAreCalledHalftone) {
  const std::string out = NewPath("names");
  Words words = RunOf(out);
  *(std::find(words.begin(), words.end(), "--epochs") + 1) = "200";
  const Child run = Start("names", words, OwnVariables());
  for (int i = 0; i < 3000 && Metrics(out).empty(); ++i) usleep(10000);
  EXPECT_EQ(ReadAll(absl::StrCat("/proc/", run.pid, "/comm")), "halftone\n");
  Signal(run.pid, SIGKILL);
  Wait(run);
}

}  // namespace
}  // namespace halftone
