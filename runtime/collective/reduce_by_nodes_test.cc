#include "runtime/collective/reduce_by_nodes.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/collective/forwarding_communicator.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Of a rank on another machine than it is, and what it was told.
class Elsewhere : public ForwardingCommunicator {
 public:
  Elsewhere(std::unique_ptr<Communicator> inner, int machine)
      : ForwardingCommunicator(std::move(inner)), machine_(machine) {}
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view mine) override {
    return ForwardingCommunicator::AllGather(absl::StrCat(mine, machine_));
  }
  absl::Status ReduceByNodes(int ranks_per_node) override {
    told = ranks_per_node;
    return ForwardingCommunicator::ReduceByNodes(ranks_per_node);
  }
  int told = 0;

 private:
  const int machine_;
};

// By rank, for ranks that are on these machines.
std::vector<absl::StatusOr<int>> Reduce(const std::vector<int>& machines,
                                        int64_t ranks_per_node) {
  const int ranks = static_cast<int>(machines.size());
  auto all = MakeInProcessCommunicators(ranks, absl::Seconds(60));
  std::vector<absl::StatusOr<int>> found(ranks, 0);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Elsewhere communicator(std::move(all[r]), machines[r]);
      found[r] = ReduceByNodes(communicator, ranks_per_node);
      if (found[r].ok()) {
        EXPECT_EQ(communicator.told, *found[r]);
      }
      EXPECT_TRUE(communicator.Barrier().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return found;
}

void ExpectNodesOf(int size, const std::vector<int>& machines,
                   int64_t ranks_per_node = 0) {
  for (const absl::StatusOr<int>& found : Reduce(machines, ranks_per_node)) {
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, size);
  }
}

TEST(ReduceByNodes, FindsWhatEachMachineHas) {
  ExpectNodesOf(2, {5, 5, 7, 7});
  ExpectNodesOf(3, {5, 5, 5, 7, 7, 7});
  ExpectNodesOf(4, {5, 5, 5, 5});
  ExpectNodesOf(1, {5, 7, 5});
}

TEST(ReduceByNodes, OrTakesWhatItIsTold) {
  ExpectNodesOf(2, {5, 5, 5, 5}, 2);
  ExpectNodesOf(2, {5, 5, 5, 7}, 2);
}

void ExpectRefused(const std::vector<int>& machines, int64_t ranks_per_node,
                   const std::string& text, const std::string& more) {
  for (const absl::StatusOr<int>& found : Reduce(machines, ranks_per_node)) {
    EXPECT_EQ(ExitCodeOf(found.status()), ExitCode::kUsage);
    EXPECT_THAT(std::string(found.status().message()),
                AllOf(HasSubstr(text), HasSubstr(more)));
  }
}

TEST(ReduceByNodes, RefusesWhatFormsNoNodes) {
  const std::string field = "dist.hierarchical_allreduce_inter_nranks";
  ExpectRefused({5, 5, 5, 7}, 0, field, "found 3, 1");
  ExpectRefused({5, 5, 7, 5}, 0, field, "found 2, 1, 1");
  ExpectRefused({5, 5, 5, 5}, 3, field + " 3", "found 4 ranks");
  ExpectRefused({5, 5}, 4, field + " 4", "found 2 ranks");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
