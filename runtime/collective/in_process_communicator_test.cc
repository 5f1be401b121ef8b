#include <thread>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/communicator_conformance.h"

namespace halftone {
namespace runtime {
namespace {

CommunicatorCase Case(int world_size) {
  return {"of_" + std::to_string(world_size), world_size,
          MakeInProcessCommunicators};
}

CommunicatorCase ByNodes(int world_size, int ranks_per_node) {
  CommunicatorCase made = Case(world_size);
  made.name += "_in_nodes_of_" + std::to_string(ranks_per_node);
  made.ranks_per_node = ranks_per_node;
  return made;
}

std::string CaseName(const ::testing::TestParamInfo<CommunicatorCase>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorConformance,
                         ::testing::Values(Case(1), Case(2), Case(3), Case(8),
                                           ByNodes(3, 1), ByNodes(4, 2),
                                           ByNodes(6, 2), ByNodes(6, 3),
                                           ByNodes(4, 4)),
                         CaseName);

INSTANTIATE_TEST_SUITE_P(Single, CommunicatorConformance,
                         ::testing::Values(CommunicatorCase{
                             "of_1", 1,
                             [](int, absl::Duration) {
                               std::vector<std::unique_ptr<Communicator>> one;
                               one.push_back(MakeSingleCommunicator());
                               return one;
                             }}),
                         CaseName);

TEST(SingleCommunicator, FailsAfterAbort) {
  std::unique_ptr<Communicator> comm = MakeSingleCommunicator();
  EXPECT_TRUE(comm->Barrier().ok());
  comm->Abort(ModelError("no data"));
  EXPECT_THAT(std::string(comm->Barrier().message()),
              ::testing::HasSubstr("no data"));
  EXPECT_FALSE(comm->AllGather("x").ok());
}

TEST(InProcessCommunicator, NamesAllMissingRanks) {
  auto ranks = MakeInProcessCommunicators(4, absl::Milliseconds(50));
  absl::Status status = ranks[2]->Barrier();
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("ranks 0, 1 and 3 did not arrive"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
