// Ranks that the real launchers of others start on two nodes: two network
// namespaces of this machine, under Slurm two nodes of a cluster made here.
// Each is skipped, and says so, where its launcher or namespaces are not.
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/programs.h"
#include "tests/support/run_files.h"
#include "tests/support/same_training.h"
#include "tests/support/slurm_cluster.h"
#include "tests/support/two_nodes.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

Variables WithToken() {
  Variables env = OwnVariables();
  env["HALFTONE_TOKEN"] = "of the test";
  return env;
}

class TwoNodesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    (void)CompiledModel();
    const std::string trouble = nodes_.Make();
    if (!trouble.empty()) {
      GTEST_SKIP() << "no network namespaces here: " << trouble;
    }
  }
  // Both nodes' commands succeed, and train as ours do.
  void ExpectSameTraining(const Words& node_0, const Words& node_1,
                          const std::string& out, int ranks,
                          const Variables& env_0 = WithToken(),
                          const Variables& env_1 = WithToken()) {
    // Starters whose nodes do not find each other wait for long.
    const Words limit = {"/usr/bin/timeout", "180"};
    const Child one = Start("on-0", nodes_.On(0, Join(limit, node_0)), env_0);
    const Child two = Start("on-1", nodes_.On(1, Join(limit, node_1)), env_1);
    const Result first = Wait(one), second = Wait(two);
    ASSERT_EQ(first.exit_code(), 0) << first.out << first.err;
    ASSERT_EQ(second.exit_code(), 0) << second.out << second.err;
    EXPECT_EQ(Metrics(out), MetricsOfOurs(ranks));
  }

  TwoNodes nodes_;
};

TEST_F(TwoNodesTest, Torchrun) {
  const std::string torchrun = FindProgram("HALFTONE_TORCHRUN", "torchrun");
  if (torchrun.empty()) {
    GTEST_SKIP() << "no torchrun in PATH or in HALFTONE_TORCHRUN";
  }
  for (const std::string backend : {"static", "c10d"}) {
    const std::string out = NewPath(backend);
    const auto on = [&](int node) {
      Words words = {torchrun, "--nnodes=2", "--nproc-per-node=2",
                     "--no-python"};
      if (backend == "static") {
        words.push_back(absl::StrCat("--node-rank=", node));
        words.push_back("--master-addr=" + nodes_.AddressOf(0));
        words.push_back("--master-port=29401");
      } else {
        words.push_back("--rdzv-backend=c10d");
        words.push_back("--rdzv-id=pair");
        words.push_back("--rdzv-endpoint=" + nodes_.AddressOf(0) + ":29402");
        // This machine's name, which both nodes have, tells them nothing.
        words.push_back(
            absl::StrCat("--rdzv-conf=is_host=", node == 0 ? "true" : "false"));
        words.push_back("--local-addr=" + nodes_.AddressOf(node));
      }
      return Join(words, RunOf(out));
    };
    ExpectSameTraining(on(0), on(1), out, 4);
  }
}

TEST_F(TwoNodesTest, PaddleLaunch) {
  const std::string python = FindPython("HALFTONE_PADDLE_PYTHON", "paddle");
  if (python.empty()) {
    GTEST_SKIP() << "no paddle for python3 or HALFTONE_PADDLE_PYTHON";
  }
  const std::string script = NewPath("exec") + ".py";
  std::ofstream(script) << "import os, sys\nos.execv(sys.argv[1], "
                           "sys.argv[1:])\n";
  const std::string out = NewPath("fleet");
  const auto on = [&](int node) {
    // Set and empty, it stands for one GPU there.
    return Join(
        {"/usr/bin/env", "-u", "CUDA_VISIBLE_DEVICES", python, "-m",
         "paddle.distributed.launch", "--nnodes", "2", "--nproc_per_node", "2",
         "--rank", absl::StrCat(node), "--master",
         nodes_.AddressOf(0) + ":29403", "--host", nodes_.AddressOf(node),
         "--log_dir", NewPath(absl::StrCat("paddle-", node)), script},
        RunOf(out));
  };
  ExpectSameTraining(on(0), on(1), out, 4);
}

// Its remote shell is the other namespace.
TEST_F(TwoNodesTest, Mpirun) {
  const std::string mpirun = FindProgram("HALFTONE_MPIRUN", "mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun in PATH or in HALFTONE_MPIRUN";
  const std::string agent = NewPath("agent.sh"), hosts = NewPath("hosts");
  std::ofstream(agent) << "#!/bin/sh\nshift\nexec "
                       << absl::StrJoin(nodes_.On(1, {"/bin/sh"}), " ")
                       << " -c \"$*\"\n";
  chmod(agent.c_str(), 0700);
  std::ofstream(hosts) << nodes_.AddressOf(0) << " slots=2\n"
                       << nodes_.AddressOf(1) << " slots=2\n";
  const std::string out = NewPath("mpi");
  const Words command = Join(
      {mpirun, "--allow-run-as-root", "--hostfile", hosts, "--mca",
       "plm_rsh_agent", agent, "-x", "HALFTONE_TOKEN", "-x", "OMP_NUM_THREADS",
       "-x", "MASTER_ADDR=" + nodes_.AddressOf(0), "-x", "MASTER_PORT=29404"},
      RunOf(out));
  const Result result =
      Wait(Start("mpirun", nodes_.On(0, command), WithToken()));
  ASSERT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_EQ(Metrics(out), MetricsOfOurs(4));
}

// Without an address of rank 0 the ranks cannot meet, and say what they need.
TEST_F(TwoNodesTest, MpirunWithoutAnAddress) {
  const std::string mpirun = FindProgram("HALFTONE_MPIRUN", "mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun in PATH or in HALFTONE_MPIRUN";
  Variables env = WithToken();
  env["OMPI_COMM_WORLD_RANK"] = "0";
  env["OMPI_COMM_WORLD_SIZE"] = "4";
  env["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  env["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  const Result result = Wait(Start("no-address", RunOf(NewPath("none")), env));
  EXPECT_EQ(result.exit_code(), 2);
  EXPECT_THAT(result.err, HasSubstr("MASTER_ADDR is not set"));
}

// What Kubeflow's PyTorchJob gives a pod: a node's variables, in the form of
// its older versions, and in that of the newer ones (torchrun's own flags).
TEST_F(TwoNodesTest, PyTorchJobsVariables) {
  for (const bool newer : {false, true}) {
    const std::string out = NewPath("pods");
    const Words run = RunOf(out);
    Words launch = {Halftone(), "launch"};
    if (!newer) launch = Join(launch, {"--ranks", "2"});
    launch = Join(launch, {run.begin() + 1, run.end()});
    const auto pod = [&](int node) {
      Variables env = WithToken();
      env["PYTHONUNBUFFERED"] = "1";
      for (const std::string prefix : {"", "PET_"}) {
        if (!prefix.empty() && !newer) continue;
        env[prefix + "MASTER_ADDR"] = nodes_.AddressOf(0);
        env[prefix + "MASTER_PORT"] = "23456";
      }
      env["RANK"] = absl::StrCat(node);
      env["WORLD_SIZE"] = newer ? "4" : "2";
      if (newer) {
        env["PET_NNODES"] = "2";
        env["PET_NODE_RANK"] = absl::StrCat(node);
        env["PET_NPROC_PER_NODE"] = "2";
      }
      return env;
    };
    ExpectSameTraining(launch, launch, out, 4, pod(0), pod(1));
  }
}

// Steps of one node and of two; without a word about addresses.
TEST(SlurmTest, StepsOfOneAndTwoNodes) {
  (void)CompiledModel();
  SlurmCluster cluster;
  const std::string trouble = cluster.Start();
  if (!trouble.empty()) GTEST_SKIP() << "no Slurm here: " << trouble;
  for (const std::string nodes : {"1", "2"}) {
    const std::string out = NewPath("slurm-run");
    const Result result =
        cluster.Run(Join({"srun", "-N", nodes, "-n", "2"}, RunOf(out)));
    ASSERT_EQ(result.exit_code(), 0) << result.out << result.err;
    EXPECT_EQ(Metrics(out), MetricsOfOurs());
  }
  // One `launch` per node, with two ranks each.
  const std::string out = NewPath("slurm-launch");
  const Words run = RunOf(out);
  setenv("HALFTONE_TOKEN", "of the test", 1);
  const Result result = cluster.Run(
      Join({"srun", "-N", "2", "-n", "2", Halftone(), "launch", "--ranks", "2"},
           {run.begin() + 1, run.end()}));
  ASSERT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_EQ(Metrics(out), MetricsOfOurs(4));
}

}  // namespace
}  // namespace halftone
