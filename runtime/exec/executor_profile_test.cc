// Timed steps: what the spans say, and that the numbers are the same.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/exec/executor_testing.h"

namespace halftone {
namespace runtime {
namespace {

class ExecutorProfileTest : public ::testing::Test {
 protected:
  std::unique_ptr<TestRank> MakeRank(std::unique_ptr<Device> device,
                                     bool profile) {
    ExecutorOptions options;
    options.profile = profile;
    auto rank = std::make_unique<TestRank>(
        program_.get(), options, std::move(device), MakeSingleCommunicator(),
        device_is_fake_ ? FakeKernels() : kernels::Kernels());
    EXPECT_TRUE(rank->status.ok()) << rank->status;
    binding_ = *rank->executor->Prepare("train", Samples(2));
    EXPECT_TRUE(rank->executor->Initialize(7).ok());
    return rank;
  }

  std::unique_ptr<Program> program_ = ParseProgram();
  bool device_is_fake_ = false;
  int binding_ = -1;
  const std::vector<float> x_ = {1, 2, 3, 4};
};

TEST_F(ExecutorProfileTest, SpansFollowEachOtherWithinTheStep) {
  const auto rank = MakeRank(MakeCpuDevice(0, 1), /*profile=*/true);
  Executor& executor = *rank->executor;
  for (int step = 0; step < 4; ++step) {
    const int64_t ticket = *executor.Execute(binding_, {Feed(x_)});
    ASSERT_TRUE(executor.Read(ticket).ok());
    const absl::Span<const Executor::Span> spans = executor.spans();
    ASSERT_EQ(spans.size(), executor.plan(binding_).steps.size());
    double last = 0, busy = 0;
    for (const Executor::Span& span : spans) {
      EXPECT_GE(span.begin, last);
      EXPECT_GE(span.end, span.begin);
      busy += span.end - span.begin;
      last = span.end;
    }
    EXPECT_GT(busy, 0);
    EXPECT_LE(busy, last);
  }
}

TEST_F(ExecutorProfileTest, ChangesNoNumber) {
  const auto timed = MakeRank(MakeCpuDevice(0, 1), /*profile=*/true);
  const auto plain = MakeRank(MakeCpuDevice(0, 1), /*profile=*/false);
  for (int step = 0; step < 3; ++step) {
    for (const auto& rank : {timed.get(), plain.get()}) {
      const int64_t ticket = *rank->executor->Execute(binding_, {Feed(x_)});
      ASSERT_TRUE(rank->executor->Read(ticket).ok());
    }
  }
  EXPECT_EQ(timed->Cell(kW), plain->Cell(kW));
  EXPECT_TRUE(plain->executor->spans().empty());
}

// A captured step has no times of its own: with them nothing is captured.
TEST_F(ExecutorProfileTest, StepsRunOneByOneWhereTheyCouldBeReplayed) {
  device_is_fake_ = true;
  for (const bool profile : {false, true}) {
    auto device = MakeFakeDevice(FakeDeviceOptions());
    FakeDevice* const fake = device.get();
    const auto rank = MakeRank(std::move(device), profile);
    for (int step = 0; step < 3; ++step) {
      const int64_t ticket = *rank->executor->Execute(binding_, {Feed(x_)});
      ASSERT_TRUE(rank->executor->Read(ticket).ok());
    }
    int captures = 0;
    for (const std::string& line : fake->log()) {
      captures += line.find(": capture on") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(captures, profile ? 0 : 1);
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
