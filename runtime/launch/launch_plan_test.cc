#include "runtime/launch/launch_plan.h"

#include <sys/stat.h>

#include <fstream>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

LaunchPlan Plan(const LaunchOptions& options, const Environment& env = {}) {
  auto plan = MakeLaunchPlan(options, env, 8, {"127.0.0.1", "10.0.0.2"});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : LaunchPlan();
}

std::string Error(const LaunchOptions& options, const Environment& env = {},
                  ExitCode code = ExitCode::kUsage) {
  auto plan = MakeLaunchPlan(options, env, 8, {"127.0.0.1", "10.0.0.2"});
  EXPECT_EQ(ExitCodeOf(plan.status()), code) << plan.status();
  return std::string(plan.status().message());
}

TEST(LaunchPlan, DefaultIsOneRankOnTheLoopback) {
  const LaunchPlan plan = Plan({});
  EXPECT_EQ(plan.world_size(), 1);
  EXPECT_EQ(ToString(plan.master), "127.0.0.1:0");
  EXPECT_EQ(plan.omp_threads, 8);
  EXPECT_TRUE(plan.token_is_new);
  EXPECT_EQ(plan.token.size(), 32u);
}

TEST(LaunchPlan, Ranks) {
  LaunchOptions options;
  options.ranks = "3";
  EXPECT_EQ(Plan(options).ranks, 3);
  EXPECT_EQ(Plan(options).omp_threads, 2);
  options.ranks = "cpu";
  EXPECT_EQ(Plan(options).ranks, 8);
  options.ranks = "auto";
  EXPECT_EQ(Plan(options).ranks, 8);
  options.visible_gpus = 2;
  EXPECT_THAT(Plan(options).gpus, ElementsAre("0", "1"));
  EXPECT_EQ(Plan(options).omp_threads, 1);
  options.ranks = "gpu";
  EXPECT_EQ(Plan(options).ranks, 2);
  options.visible_gpus = 0;
  EXPECT_THAT(Error(options, {}, ExitCode::kDevice), HasSubstr("no GPU"));
  for (const char* bad : {"0", "-1", "two", "5000"}) {
    options.ranks = bad;
    EXPECT_THAT(Error(options), HasSubstr("--ranks: expected a number"));
  }
  options.ranks = "2049";
  options.nnodes = 2;
  options.node_rank = 0;
  EXPECT_THAT(Error(options),
              HasSubstr("2 nodes with 2,049 ranks each: a run has up to 4096 "
                        "ranks"));
}

TEST(LaunchPlan, Gpus) {
  LaunchOptions options;
  options.gpus = {3, 1};
  EXPECT_EQ(Plan(options).ranks, 2);
  EXPECT_THAT(Plan(options).gpus, ElementsAre("3", "1"));
  const Environment rank =
      RankEnvironment(Plan(options), {}, 1, 0, {"127.0.0.1", 5});
  EXPECT_EQ(rank.at("CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(rank.at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(rank.at("HALFTONE_DEVICE"), "0");
  EXPECT_EQ(rank.at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(Plan(options, {{"CUDA_VISIBLE_DEVICES", "0,1,3"}}).ranks, 2);
  EXPECT_THAT(Error(options, {{"CUDA_VISIBLE_DEVICES", "0,1"}}),
              HasSubstr("3 is not in CUDA_VISIBLE_DEVICES=0,1"));
  options.ranks = "3";
  EXPECT_THAT(Error(options), HasSubstr("--ranks 3 but 2 ids in --gpus"));
  options.gpus = {1, 0, 1};
  EXPECT_THAT(Error(options),
              HasSubstr("1 comes twice, but NCCL connects no processes on one "
                        "GPU; ranks that share it are threads: halftone run "
                        "--gpus 1,0,1"));
}

TEST(LaunchPlan, VisibleDevicesDecideForAuto) {
  LaunchOptions options;
  options.ranks = "auto";
  options.visible_gpus = 2;
  EXPECT_THAT(Plan(options, {{"CUDA_VISIBLE_DEVICES", "5,GPU-ab"}}).gpus,
              ElementsAre("5", "GPU-ab"));
}

TEST(LaunchPlan, SeveralNodes) {
  LaunchOptions options;
  options.ranks = "4";
  options.nnodes = 2;
  options.node_rank = 0;
  EXPECT_THAT(Error(options), HasSubstr("needs --master HOST:PORT"));
  options.master = "node0:4000";
  options.command = {"halftone", "run", "my model.htc"};
  const LaunchPlan plan = Plan(options);
  EXPECT_EQ(plan.world_size(), 8);
  EXPECT_EQ(CommandForNode(options, plan, 1),
            "halftone launch --nnodes 2 --node-rank 1 --master node0:4000 "
            "--ranks 4 -- halftone run 'my model.htc'");
  LaunchOptions ours = options;
  ours.own_verb = true;
  ours.self = "./bin/halftone";
  LaunchPlan with_file = plan;
  with_file.token_file = "/tmp/a b/token";
  EXPECT_EQ(CommandForNode(ours, with_file, 1),
            "./bin/halftone launch --nnodes 2 --node-rank 1 --master "
            "node0:4000 --ranks 4 --token-file '/tmp/a b/token' run 'my "
            "model.htc'");
  // What a shell reads back as the same, and a terminal does not obey.
  ours.command = {"halftone", "run", "it's \033[2J\\n"};
  EXPECT_THAT(CommandForNode(ours, plan, 1),
              HasSubstr("run $'it\\'s \\u001b[2J\\\\n'"));
  options.node_rank = 1;
  EXPECT_THAT(Error(options), HasSubstr("node 1 needs the run's token"));
  const LaunchPlan second = Plan(options, {{"HALFTONE_TOKEN", "abc"}});
  EXPECT_EQ(second.rank(0), 4);
  EXPECT_EQ(second.token, "abc");
  EXPECT_FALSE(second.token_is_new);
  options.node_rank = 2;
  EXPECT_THAT(Error(options), HasSubstr("--node-rank 2 is not below"));
  options.node_rank = -1;
  EXPECT_THAT(Error(options), HasSubstr("needs --node-rank"));
}

TEST(LaunchPlan, MasterForms) {
  LaunchOptions options;
  options.master = "node0";
  EXPECT_EQ(ToString(Plan(options).master), "node0:29500");
  options.master = ":5000";
  EXPECT_EQ(ToString(Plan(options).master), "127.0.0.1:5000");
  options.master = "[fe80::1]";
  EXPECT_EQ(ToString(Plan(options).master), "[fe80::1]:29500");
  options.master = "localhost:0";
  EXPECT_EQ(ToString(Plan(options).master), "localhost:0");
  options.nnodes = 2;
  options.node_rank = 0;
  EXPECT_THAT(Error(options), HasSubstr("meet at a port that all know"));
  options.master = ":5000";
  EXPECT_THAT(Error(options), HasSubstr("--master :5000: which of 2 nodes?"));
  options.nnodes = 0;
  options.master = "node0:x";
  EXPECT_THAT(Error(options), HasSubstr("--master: expected HOST:PORT"));
}

TEST(LaunchPlan, Ips) {
  LaunchOptions options;
  options.ips = {"10.0.0.1", "10.0.0.2"};
  const LaunchPlan plan = Plan(options, {{"HALFTONE_TOKEN", "abc"}});
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(plan.node_rank, 1);
  EXPECT_EQ(ToString(plan.master), "10.0.0.1:29500");
  options.ips = {"10.0.0.1", "10.0.0.3"};
  EXPECT_THAT(Error(options), HasSubstr("is an address of this machine"));
}

TEST(LaunchPlan, NodesFromAnOperator) {
  const LaunchPlan plan = Plan({}, {{"PET_NNODES", "2"},
                                    {"PET_NODE_RANK", "1"},
                                    {"PET_NPROC_PER_NODE", "4"},
                                    {"PET_MASTER_ADDR", "m"},
                                    {"PET_MASTER_PORT", "23456"},
                                    {"HALFTONE_TOKEN", "abc"}});
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(plan.ranks, 4);
  EXPECT_EQ(plan.rank(0), 4);
  EXPECT_EQ(ToString(plan.master), "m:23456");
}

TEST(LaunchPlan, ThreadsFromTheEnvironment) {
  EXPECT_EQ(Plan({}, {{"OMP_NUM_THREADS", "3,2"}}).omp_threads, 3);
  EXPECT_THAT(Error({}, {{"OMP_NUM_THREADS", "many"}}),
              HasSubstr("OMP_NUM_THREADS='many'"));
}

TEST(LaunchPlan, ReadersOfCommandsThatHaveThem) {
  LaunchOptions options;
  options.command = {"./train", "--workers", "3"};
  EXPECT_EQ(Plan(options).readers, 0);
  options.readers = 1;
  options.command = {"halftone", "run", "m.htc"};
  EXPECT_EQ(Plan(options).readers, 1);
  options.command = {"halftone", "run", "m.htc", "--workers", "3"};
  EXPECT_EQ(Plan(options).readers, 3);
  options.command = {"halftone", "run", "--workers=4"};
  EXPECT_EQ(Plan(options).readers, 4);
  options.command = {"halftone", "run", "--workers=many"};
  EXPECT_EQ(Plan(options).readers, 0);
}

TEST(LaunchPlan, LogsBesideTheRunOrWhereAsked) {
  LaunchOptions options;
  options.own_verb = true;
  options.command = {"halftone", "run", "--out", "runs/x"};
  EXPECT_EQ(Plan(options).log_dir, "runs/x/logs");
  EXPECT_EQ(Plan(options).failure_file, "runs/x/failure.json");
  options.command = {"halftone", "run", "--out=runs/y"};
  EXPECT_EQ(Plan(options).log_dir, "runs/y/logs");
  options.log_dir = "z";
  EXPECT_EQ(Plan(options).log_dir, "z");
  options.command.clear();
  EXPECT_EQ(Plan(options).failure_file, "z/failure.json");
  options.log_dir.clear();
  EXPECT_EQ(Plan(options, {{"TMPDIR", "/t"}}).log_dir,
            "/t/halftone-logs-XXXXXX");
  EXPECT_TRUE(Plan(options).log_dir_is_pattern);
  // It is a file.
  options.command = {"halftone", "predict", "--out", "x.npz"};
  EXPECT_TRUE(Plan(options).log_dir_is_pattern);
  // What another program does with its --out is not known.
  options.own_verb = false;
  options.command = {"./train", "--out", "model.bin"};
  EXPECT_TRUE(Plan(options).log_dir_is_pattern);
}

TEST(LaunchPlan, TeeIsChecked) {
  LaunchOptions options;
  options.ranks = "2";
  options.tee = {2};
  EXPECT_THAT(Error(options), HasSubstr("--tee 2: ranks 0 to 1 run here"));
}

TEST(LaunchPlan, TheTokenIsNeverExplained) {
  const LaunchPlan plan = Plan({}, {{"HALFTONE_TOKEN", "s3cret"}});
  EXPECT_THAT(plan.explanation, Not(Contains(HasSubstr("s3cret"))));
  const std::string path = ::testing::TempDir() + "/launch-token";
  std::ofstream(path) << "fromfile";
  chmod(path.c_str(), 0600);
  LaunchOptions options;
  options.token_file = path;
  EXPECT_EQ(Plan(options).token, "fromfile");
}

TEST(OwnAddresses, HaveTheLoopback) {
  EXPECT_THAT(OwnAddresses(), Contains("127.0.0.1"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
