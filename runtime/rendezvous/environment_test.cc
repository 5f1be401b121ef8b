#include "runtime/rendezvous/environment.h"

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RankPlacement Find(const Environment& env) {
  auto place = FindRank(env);
  EXPECT_TRUE(place.ok()) << place.status();
  return place.ok() ? *place : RankPlacement();
}

std::string Error(const Environment& env) {
  auto place = FindRank(env);
  EXPECT_EQ(ExitCodeOf(place.status()), ExitCode::kUsage) << place.status();
  return std::string(place.status().message());
}

std::string Numbers(const RankPlacement& place) {
  return std::to_string(place.rank) + "/" + std::to_string(place.world_size) +
         " " + std::to_string(place.local_rank) + "/" +
         std::to_string(place.local_world_size);
}

TEST(FindRank, NothingIsOneRank) {
  const RankPlacement place = Find({{"PATH", "/bin"}, {"RANK", ""}});
  EXPECT_EQ(Numbers(place), "0/1 0/1");
  EXPECT_EQ(place.source, "none");
  EXPECT_EQ(place.explanation.size(), 1u);
}

TEST(FindRank, Halftone) {
  const RankPlacement place = Find({{"HALFTONE_RANK", "3"},
                                    {"HALFTONE_WORLD_SIZE", "4"},
                                    {"HALFTONE_LOCAL_RANK", "1"},
                                    {"HALFTONE_LOCAL_WORLD_SIZE", "2"},
                                    {"HALFTONE_MASTER", "10.0.0.1:4000"},
                                    {"HALFTONE_MASTER_SERVED", "1"},
                                    {"HALFTONE_ATTEMPT", "2"},
                                    {"RANK", "0"},
                                    {"LOCAL_RANK", "0"}});
  EXPECT_EQ(Numbers(place), "3/4 1/2");
  EXPECT_EQ(ToString(place.master), "10.0.0.1:4000");
  EXPECT_TRUE(place.master_served);
  EXPECT_EQ(place.attempt, 2);
  EXPECT_THAT(place.explanation, Contains(HasSubstr("not used    torchrun")));
}

TEST(FindRank, HalftoneHalfSet) {
  EXPECT_THAT(Error({{"HALFTONE_RANK", "0"}}),
              HasSubstr("HALFTONE_WORLD_SIZE is not"));
  EXPECT_THAT(Error({{"HALFTONE_RANK", "0"}, {"HALFTONE_WORLD_SIZE", "2"}}),
              HasSubstr("HALFTONE_MASTER (HOST:PORT) is not"));
}

const Environment kTorchrun = {{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node0"},
                               {"MASTER_PORT", "29400"}};

TEST(FindRank, Torchrun) {
  const RankPlacement place = Find(kTorchrun);
  EXPECT_EQ(Numbers(place), "5/8 1/4");
  EXPECT_EQ(ToString(place.master), "node0:29400");
  EXPECT_FALSE(place.master_served);
  EXPECT_EQ(place.source, "torchrun");
  EXPECT_THAT(place.explanation[0], HasSubstr("RANK=5 WORLD_SIZE=8"));
}

TEST(FindRank, TorchrunHalfSetOrContradictory) {
  Environment env = kTorchrun;
  env.erase("WORLD_SIZE");
  EXPECT_THAT(Error(env), HasSubstr("RANK=5 is set but WORLD_SIZE is not"));
  env = kTorchrun;
  env.erase("RANK");
  env.erase("WORLD_SIZE");
  EXPECT_THAT(Error(env), HasSubstr("RANK and WORLD_SIZE are not"));
  env = kTorchrun;
  env["RANK"] = "8";
  EXPECT_THAT(Error(env), HasSubstr("RANK=8 is not below WORLD_SIZE=8"));
  env["RANK"] = "-1";
  EXPECT_THAT(Error(env), HasSubstr("RANK='-1' is not a whole number"));
  env = kTorchrun;
  env["LOCAL_WORLD_SIZE"] = "9";
  EXPECT_THAT(Error(env), HasSubstr("contradicts"));
  env["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_THAT(Error(env), HasSubstr("LOCAL_RANK=1 is not below"));
  env = kTorchrun;
  env.erase("MASTER_ADDR");
  EXPECT_THAT(Error(env), HasSubstr("MASTER_ADDR is not set"));
  env = kTorchrun;
  env["MASTER_PORT"] = "70000";
  EXPECT_THAT(Error(env), HasSubstr("MASTER_PORT=70000 is not a port"));
}

TEST(FindRank, FleetrunOld) {
  Environment env = {
      {"PADDLE_TRAINER_ID", "2"},
      {"PADDLE_TRAINERS_NUM", "4"},
      {"PADDLE_CURRENT_ENDPOINT", "10.0.0.2:6170"},
      {"PADDLE_TRAINER_ENDPOINTS",
       "10.0.0.1:6170,10.0.0.1:6171,10.0.0.2:6170,10.0.0.2:6171"},
      {"FLAGS_selected_gpus", "5"}};
  const RankPlacement place = Find(env);
  EXPECT_EQ(Numbers(place), "2/4 0/2");
  EXPECT_EQ(ToString(place.master), "10.0.0.1:6170");
  EXPECT_EQ(place.device, 5);
  EXPECT_EQ(place.source, "fleetrun");
  env["PADDLE_CURRENT_ENDPOINT"] = "10.0.0.2:6171";
  EXPECT_THAT(Error(env), HasSubstr("PADDLE_CURRENT_ENDPOINT=10.0.0.2:6171"));
  env["PADDLE_TRAINERS_NUM"] = "3";
  EXPECT_THAT(Error(env), HasSubstr("has 4 entries, PADDLE_TRAINERS_NUM=3"));
}

TEST(FindRank, FleetrunNew) {
  Environment env = {{"PADDLE_GLOBAL_RANK", "1"},
                     {"PADDLE_GLOBAL_SIZE", "2"},
                     {"PADDLE_LOCAL_RANK", "1"},
                     {"PADDLE_TRAINER_ID", "1"},
                     {"PADDLE_MASTER", "127.0.0.1:50000"}};
  const RankPlacement place = Find(env);
  EXPECT_EQ(Numbers(place), "1/2 1/2");
  EXPECT_EQ(ToString(place.master), "127.0.0.1:50000");
  env["PADDLE_TRAINER_ID"] = "0";
  EXPECT_THAT(Error(env), HasSubstr("PADDLE_TRAINER_ID=0 contradicts"));
}

TEST(FindRank, OpenMpiOnOneMachineNeedsNoAddress) {
  const RankPlacement place =
      Find({{"OMPI_COMM_WORLD_RANK", "1"},
            {"OMPI_COMM_WORLD_SIZE", "2"},
            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
            {"OMPI_MCA_orte_hnp_uri", "1685979136.0;tcp://192.0.2.2:55793"}});
  EXPECT_EQ(Numbers(place), "1/2 1/2");
  EXPECT_EQ(place.master.host, "");
  EXPECT_THAT(place.job_id, HasSubstr("1685979136.0"));
  EXPECT_THAT(place.explanation, Contains(HasSubstr("over the loopback")));
}

TEST(FindRank, OpenMpiOnSeveralMachinesNeedsOne) {
  Environment env = {{"OMPI_COMM_WORLD_RANK", "3"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_THAT(Error(env), HasSubstr("mpirun placed 4 ranks on several"));
  env["MASTER_ADDR"] = "node0";
  EXPECT_EQ(ToString(Find(env).master), "node0:29500");
  EXPECT_THAT(Error({{"OMPI_COMM_WORLD_SIZE", "4"}}),
              HasSubstr("OMPI_COMM_WORLD_RANK is not (Open MPI sets both)"));
}

TEST(FindRank, Mpich) {
  const RankPlacement place = Find({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(Numbers(place), "0/2 0/2");
  EXPECT_EQ(place.source, "MPICH");
  EXPECT_EQ(Numbers(Find({{"PMI_RANK", "3"},
                          {"PMI_SIZE", "4"},
                          {"MPI_LOCALRANKID", "1"},
                          {"MPI_LOCALNRANKS", "2"},
                          {"MASTER_ADDR", "a"},
                          {"MASTER_PORT", "5"}})),
            "3/4 1/2");
}

TEST(FindRank, Slurm) {
  const RankPlacement place = Find({{"SLURM_PROCID", "5"},
                                    {"SLURM_NTASKS", "7"},
                                    {"SLURM_LOCALID", "1"},
                                    {"SLURM_NODEID", "2"},
                                    {"SLURM_TASKS_PER_NODE", "2(x3),1"},
                                    {"SLURM_JOB_ID", "1234"},
                                    {"SLURM_STEP_ID", "2"},
                                    {"SLURM_JOB_NODELIST", "gpu[08-11]"}});
  EXPECT_EQ(Numbers(place), "5/7 1/2");
  EXPECT_EQ(ToString(place.master), "gpu08:18640");
  EXPECT_EQ(place.source, "Slurm");
}

TEST(FindRank, SlurmOnOneMachine) {
  const Environment env = {{"SLURM_PROCID", "1"},
                           {"SLURM_NTASKS", "2"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_JOB_NODELIST", "localhost"}};
  const RankPlacement place = Find(env);
  EXPECT_EQ(Numbers(place), "1/2 1/2");
  EXPECT_EQ(place.master.host, "");
  EXPECT_EQ(Numbers(Find({{"SLURM_NTASKS", "4"}})), "0/1 0/1");
  EXPECT_THAT(Error({{"SLURM_PROCID", "0"}}),
              HasSubstr("SLURM_NTASKS is not (Slurm sets both)"));
}

// Whoever reads it: 16 bits of a larger number would be another's port.
TEST(FindRank, APortHas16Bits) {
  EXPECT_THAT(Error({{"RANK", "0"},
                     {"WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", "65536"}}),
              HasSubstr("MASTER_PORT=65536 is not a port (1 to 65535)"));
  EXPECT_THAT(Error({{"SLURM_PROCID", "0"},
                     {"SLURM_NTASKS", "2"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_TASKS_PER_NODE", "1(x2)"},
                     {"SLURM_JOB_NODELIST", "a,b"},
                     {"MASTER_PORT", "999999"}}),
              HasSubstr("MASTER_PORT=999999 is not a port"));
  const auto node = FindNode({{"PET_NNODES", "2"},
                              {"PET_NODE_RANK", "0"},
                              {"PET_MASTER_ADDR", "m"},
                              {"PET_MASTER_PORT", "70000"}});
  EXPECT_EQ(ExitCodeOf(node.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(node.status().message()),
              HasSubstr("PET_MASTER_PORT=70000 is not a port"));
}

TEST(FindRank, AWorldHasItsMost) {
  for (const char* size : {"4097", "999999999"}) {
    EXPECT_THAT(Error({{"RANK", "0"},
                       {"WORLD_SIZE", size},
                       {"MASTER_ADDR", "127.0.0.1"}}),
                HasSubstr(absl::StrCat("WORLD_SIZE=", size,
                                       " is more than a run has: expected up "
                                       "to 4096")));
  }
}

TEST(FindRank, InnermostLauncherWins) {
  Environment env = kTorchrun;
  env["SLURM_PROCID"] = "0";
  env["SLURM_NTASKS"] = "2";
  const RankPlacement place = Find(env);
  EXPECT_EQ(place.source, "torchrun");
  EXPECT_THAT(place.explanation, Contains(HasSubstr("SLURM_PROCID=0")));
}

// Old operators: RANK and WORLD_SIZE count pods.
TEST(FindRank, RankWithoutLocalRankIsTheNodes) {
  Environment env = {{"RANK", "1"},
                     {"WORLD_SIZE", "3"},
                     {"MASTER_ADDR", "job-master-0"},
                     {"MASTER_PORT", "23456"}};
  const RankPlacement place = Find(env);
  EXPECT_EQ(Numbers(place), "1/3 0/1");
  EXPECT_EQ(ToString(place.master), "job-master-0:23456");
  EXPECT_THAT(place.explanation[0],
              HasSubstr("without LOCAL_RANK: taken as the node's"));
  auto node = FindNode(env);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->nodes, 3);
  EXPECT_EQ(node->node_rank, 1);
  env.erase("MASTER_ADDR");
  EXPECT_THAT(Error(env), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(Error({{"RANK", "1"}}), HasSubstr("WORLD_SIZE is not"));
}

TEST(FindRank, Pet) {
  Environment env = {{"PET_NNODES", "2"},          {"PET_NODE_RANK", "1"},
                     {"PET_NPROC_PER_NODE", "4"},  {"PET_MASTER_ADDR", "m"},
                     {"PET_MASTER_PORT", "23456"}, {"RANK", "1"},
                     {"WORLD_SIZE", "8"}};
  EXPECT_THAT(Error(env), HasSubstr("start it with `halftone launch`"));
  auto node = FindNode(env);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->nodes, 2);
  EXPECT_EQ(node->node_rank, 1);
  EXPECT_EQ(node->ranks_per_node, 4);
  EXPECT_EQ(ToString(node->master), "m:23456");
  env["PET_NPROC_PER_NODE"] = "1";
  EXPECT_EQ(Numbers(Find(env)), "1/2 0/1");
}

TEST(FindNode, OneLauncherPerSlurmNode) {
  auto node = FindNode({{"SLURM_PROCID", "1"},
                        {"SLURM_STEP_NUM_TASKS", "2"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", "1"},
                        {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                        {"SLURM_STEP_NODELIST", "a1,b2"}});
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->nodes, 2);
  EXPECT_EQ(node->node_rank, 1);
  EXPECT_EQ(node->master.host, "a1");
}

TEST(FindNode, RefusesToNest) {
  auto node = FindNode({{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(ExitCodeOf(node.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(node.status().message()),
              HasSubstr("rank 1 of 2 already (Open MPI)"));
  node = FindNode({});
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->source, "none");
}

TEST(ExpandNodeList, Forms) {
  EXPECT_THAT(*ExpandNodeList("node[01-03,07],gpu5"),
              ElementsAre("node01", "node02", "node03", "node07", "gpu5"));
  EXPECT_THAT(*ExpandNodeList("a[9-10]-ib"), ElementsAre("a9-ib", "a10-ib"));
  EXPECT_THAT(*ExpandNodeList("one"), ElementsAre("one"));
  for (const char* bad :
       {"a[1", "a1]", "a[x]", "a[3-1]", "a[1]b[2]", "a,,b", "a[0-99999999]"}) {
    EXPECT_FALSE(ExpandNodeList(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
