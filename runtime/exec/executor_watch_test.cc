#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/exec/step_watcher.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::IsSupersetOf;

// Notes what it sees.
class Notes : public StepWatcher {
 public:
  absl::Status Begin(const StepPlace& place) override {
    samples = place.symbols[0];
    return absl::OkStatus();
  }
  absl::Status Before(const Step& step, Pointers) override {
    before.push_back(step.name);
    return absl::OkStatus();
  }
  absl::Status After(const Step& step, Pointers,
                     absl::Span<void* const>) override {
    after.push_back(step.name);
    return absl::OkStatus();
  }

  int64_t samples = 0;
  std::vector<std::string> before, after;
};

class ExecutorWatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<Program> program_ = ParseProgram();
};

TEST_F(ExecutorWatchTest, AWatchedStepIsSeenAndChangesNothing) {
  TestRank rank(program_.get());
  const auto binding = rank.executor->Prepare("train", Samples(2));
  ASSERT_TRUE(binding.ok()) << binding.status();
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2, 3, 4};
  Notes notes;
  ASSERT_TRUE(rank.executor->Watch(*binding, {Feed(x)}, &notes).ok());
  EXPECT_EQ(notes.samples, 2);
  EXPECT_EQ(notes.before, notes.after);
  EXPECT_THAT(notes.before, IsSupersetOf({"y", "logs"}));
  EXPECT_EQ(rank.Cell(kW), std::vector<float>({3, 3}));
  // The next step is the first one.
  const auto ticket = rank.executor->Execute(*binding, {Feed(x)});
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_EQ(*ticket, 0);
  std::string clock;
  ASSERT_TRUE(rank.executor->ReadCell(CellId(kAttempted), &clock).ok());
  EXPECT_EQ(clock, std::string("\1\0\0\0\0\0\0\0", 8));
}

// As the step found them, though the clock has gone on.
TEST_F(ExecutorWatchTest, TheLastStepsInputsAreWhatItRead) {
  TestRank rank(program_.get());
  const auto binding = rank.executor->Prepare("train", Samples(2));
  ASSERT_TRUE(rank.executor->Initialize(7).ok());
  const std::vector<float> applied = {1, 2, 3, 4}, rejected = {1, 1, 0, 1};
  ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(applied)}).ok());
  const std::vector<float> w = rank.Cell(kW);
  ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(rejected)}).ok());
  const auto inputs =
      rank.executor->LastInputs({CellId(kAttempted), CellId(kW)});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->micro_batches.size(), 1);
  const StepInputs::MicroBatch& step = inputs->micro_batches[0];
  EXPECT_EQ(step.entry, "train");
  EXPECT_EQ(step.symbols[0], 2);
  ASSERT_EQ(step.feeds.size(), 1);
  EXPECT_EQ(step.feeds[0].name, "x");
  EXPECT_EQ(step.feeds[0].bytes,
            std::string(reinterpret_cast<const char*>(rejected.data()), 16));
  EXPECT_EQ(inputs->cells[0], std::string("\1\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(inputs->cells[1],
            std::string(reinterpret_cast<const char*>(w.data()), 8));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
