// Captured steps, on a device that works asynchronously.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/device/fake_device.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/executor_testing.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

FakeDeviceOptions Deferred() {
  FakeDeviceOptions options;
  options.deferred = true;
  return options;
}

class ExecutorGraphTest : public ::testing::Test {
 protected:
  // A rank on a device that puts everything off, with a state.
  std::unique_ptr<TestRank> MakeRank(
      const ExecutorOptions& options = {},
      const kernels::KernelRegistry& kernels = FakeKernels()) {
    auto owned = MakeFakeDevice(Deferred());
    device_ = owned.get();
    auto rank =
        std::make_unique<TestRank>(program_.get(), options, std::move(owned),
                                   MakeSingleCommunicator(), kernels);
    EXPECT_TRUE(rank->status.ok()) << rank->status;
    return rank;
  }
  // Lines of the log from `begin` on that hold `text`.
  int64_t Count(const std::string& text, size_t begin = 0) const {
    const std::vector<std::string>& log = device_->log();
    return std::count_if(log.begin() + begin, log.end(),
                         [&](const std::string& line) {
                           return line.find(text) != std::string::npos;
                         });
  }

  std::unique_ptr<Program> program_ = ParseProgram();
  FakeDevice* device_ = nullptr;
};

TEST_F(ExecutorGraphTest, TheSecondStepOfABindingIsCaptured) {
  const auto rank = MakeRank();
  const auto one = rank->executor->Prepare("train", Samples(1));
  const auto two = rank->executor->Prepare("train", Samples(2));
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  const std::vector<float> a = {1, 2}, b = {1, 2, 3, 4};
  int launches = 0;
  for (int step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    const size_t begin = device_->log().size();
    ASSERT_TRUE(rank->executor->Execute(*one, {Feed(a)}).ok());
    if (step != 2) {  // a binding that comes less often
      ASSERT_TRUE(rank->executor->Execute(*two, {Feed(b)}).ok());
    }
    const int steps = step != 2 ? 2 : 1;
    launches += step > 0 ? steps : 0;
    // The kernels run by themselves in the first steps and in graphs later.
    EXPECT_EQ(Count(": sgd", begin), steps);
    EXPECT_EQ(Count("graph g", begin) > 0, step > 0);
    EXPECT_EQ(Count(": capture on compute", begin), step == 1 ? 2 : 0);
    EXPECT_EQ(Count(": launch on compute", begin), step > 0 ? steps : 0);
  }
  EXPECT_EQ(Count(": capture on compute"), 2);
  EXPECT_EQ(Count(": launch on compute"), launches);
  EXPECT_EQ(device_->live_graphs(), 2);
}

TEST_F(ExecutorGraphTest, GraphsAndSingleStepsGiveTheCpusBits) {
  TestRank cpu(program_.get());
  const std::string expected = TrainAndTrace(cpu);
  // One step is rejected, and only that one.
  EXPECT_EQ(expected.find("nan"), std::string::npos);
  EXPECT_EQ(expected.find("inf"), expected.rfind("inf"));
  EXPECT_NE(expected.find("-inf"), std::string::npos);

  const auto graphs = MakeRank();
  EXPECT_EQ(TrainAndTrace(*graphs), expected);
  EXPECT_GT(Count(": launch on compute"), 0);

  ExecutorOptions options;
  options.use_graphs = false;
  const auto single = MakeRank(options);
  EXPECT_EQ(TrainAndTrace(*single), expected);
  EXPECT_EQ(Count("graph g"), 0);
}

// Whatever stream is ahead of the others, and by how much.
TEST_F(ExecutorGraphTest, NoStreamMayOvertakeWhatItNeeds) {
  TestRank cpu(program_.get());
  const std::string expected = TrainAndTrace(cpu);
  for (const char* hasty : {"copy_in", "compute", "communicate", "copy_out"}) {
    for (const bool use_graphs : {true, false}) {
      SCOPED_TRACE(hasty);
      FakeDeviceOptions options = Deferred();
      options.hasty = hasty;
      ExecutorOptions how;
      how.use_graphs = use_graphs;
      TestRank rank(program_.get(), how, MakeFakeDevice(options),
                    MakeSingleCommunicator(), FakeKernels());
      ASSERT_TRUE(rank.status.ok()) << rank.status;
      EXPECT_EQ(TrainAndTrace(rank), expected);
    }
  }
}

TEST_F(ExecutorGraphTest, TheReplayOfARejectedStepReadsItsFeeds) {
  const auto rank = MakeRank();
  const auto binding = rank->executor->Prepare("train", Samples(1));
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> x = {1, step < 3 ? 1.0f : 0.0f};
    ASSERT_TRUE(rank->executor->Execute(*binding, {Feed(x)}).ok());
  }
  EXPECT_EQ(rank->executor->FirstNonFinite()->op, "logs");
  std::string clock;
  ASSERT_TRUE(rank->executor->ReadCell(CellId(kAttempted), &clock).ok());
  EXPECT_EQ(clock, std::string("\5\0\0\0\0\0\0\0", 8));
}

// Fails the second time that its op is enqueued: in the capture.
class FailsLater : public kernels::KernelInstance {
 public:
  explicit FailsLater(std::unique_ptr<kernels::KernelInstance> kernel)
      : kernel_(std::move(kernel)) {}
  absl::Status Enqueue(const kernels::Buffers& buffers,
                       Stream& stream) override {
    if (++calls_ == 2) return DeviceError("launch of reduce: no resources");
    return kernel_->Enqueue(buffers, stream);
  }

 private:
  std::unique_ptr<kernels::KernelInstance> kernel_;
  int calls_ = 0;
};

TEST_F(ExecutorGraphTest, AKernelThatFailsWhileCapturingIsNamed) {
  kernels::KernelRegistry registry = FakeKernels();
  registry.ForEach([](absl::string_view key, kernels::Candidate& candidate) {
    if (key.substr(0, 10) != "reduce_sum") return;
    candidate.prepare = [prepare = candidate.prepare](
                            const kernels::BoundOp& op, Device& device)
        -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
      HT_ASSIGN_OR_RETURN(auto kernel, prepare(op, device));
      if (op.name() != "g") return kernel;
      return {std::make_unique<FailsLater>(std::move(kernel))};
    };
  });
  const auto rank = MakeRank({}, registry);
  const auto binding = rank->executor->Prepare("train", Samples(1));
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  ASSERT_TRUE(rank->executor->Execute(*binding, {Feed(x)}).ok());
  const std::vector<float> w = rank->Cell(kW);
  const absl::Status status =
      rank->executor->Execute(*binding, {Feed(x)}).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("train"), HasSubstr("g: launch of reduce")));
  // No stream is left in the capture, nothing of the step was done, and there
  // is nothing to launch.
  EXPECT_EQ(rank->Cell(kW), w);
  EXPECT_EQ(device_->live_graphs(), 0);
  EXPECT_EQ(Count(": launch"), 0);
}

// The host waits once in a step, for the results of the one two before, and
// asks the device nothing else.
TEST_F(ExecutorGraphTest, ASteadyStepWaitsForNothingButResultsTwoStepsLate) {
  for (const bool use_graphs : {true, false}) {
    SCOPED_TRACE(use_graphs ? "graphs" : "no graphs");
    ExecutorOptions options;
    options.use_graphs = use_graphs;
    const auto rank = MakeRank(options);
    const auto binding = rank->executor->Prepare("train", Samples(1));
    ASSERT_TRUE(rank->executor->Initialize(7).ok());
    const std::vector<float> x = {1, 2};
    std::vector<std::string> waits;
    for (int step = 0; step < 9; ++step) {
      const size_t begin = device_->log().size();
      ASSERT_TRUE(rank->executor->Execute(*binding, {Feed(x)}).ok());
      EXPECT_EQ(Count("synchronize", begin) + Count("host: ", begin) +
                    Count("pageable", begin),
                0)
          << step;
      if (step < 2) continue;
      const size_t read = device_->log().size();
      ASSERT_TRUE(rank->executor->Read(step - 2).ok());
      ASSERT_EQ(device_->log().size(), read + 1);
      EXPECT_THAT(device_->log()[read], HasSubstr("host: synchronize e"));
      waits.push_back(device_->log()[read]);
      // Of that step, not of the one just enqueued.
      if (waits.size() < 4) continue;
      EXPECT_NE(waits.back(), waits[waits.size() - 2]);
      EXPECT_EQ(waits.back(), waits[waits.size() - 4]);
    }
  }
}

TEST_F(ExecutorGraphTest, TheNextFeedsComeWhileAStepRuns) {
  const auto rank = MakeRank();
  const auto binding = rank->executor->Prepare("train", Samples(1));
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  for (int step = 0; step < 5; ++step) {
    const size_t begin = device_->log().size();
    ASSERT_TRUE(rank->executor->Execute(*binding, {Feed(x)}).ok());
    if (step < 2) continue;
    ASSERT_TRUE(rank->executor->Read(step - 2).ok());
    const std::vector<std::string> log(device_->log().begin() + begin,
                                       device_->log().end());
    // The copy across the bus waits for the event that the step before has
    // recorded in front of its graph, and for nothing else.
    ASSERT_THAT(log[0], HasSubstr("copy_in: wait e"));
    ASSERT_THAT(log[1], HasSubstr("copy_in: copy "));
    const std::string taken = log[0].substr(strlen("copy_in: wait "));
    const auto recorded =
        std::find(log.begin(), log.end(), "compute: record " + taken);
    const auto launched =
        std::find_if(log.begin(), log.end(), [](const std::string& line) {
          return line.find(": launch on compute") != std::string::npos;
        });
    ASSERT_NE(recorded, log.end());
    EXPECT_LT(recorded - log.begin(), launched - log.begin());
  }
}

// What a step feeds stays on the device: the next one may read it again.
TEST_F(ExecutorGraphTest, KeptFeedsAreNotCopiedAgain) {
  ExecutorOptions single;
  single.use_graphs = false;
  for (const ExecutorOptions& options : {ExecutorOptions(), single}) {
    const auto copied = MakeRank(options);
    const auto kept = MakeRank(options);
    const std::vector<float> x = {1, 2};
    FeedData again;
    again.name = "x";
    again.kept = true;
    for (TestRank* rank : {copied.get(), kept.get()}) {
      ASSERT_TRUE(rank->executor->Prepare("train", Samples(1)).ok());
      ASSERT_TRUE(rank->executor->Initialize(7).ok());
    }
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(copied->executor->Execute(0, {Feed(x)}).ok());
      const size_t begin = device_->log().size();
      const auto ticket =
          kept->executor->Execute(0, {step == 0 ? Feed(x) : again});
      ASSERT_TRUE(ticket.ok()) << ticket.status();
      EXPECT_EQ(Count("copy_in: copy", begin), step == 0 ? 1 : 0);
    }
    EXPECT_EQ(kept->Cell(kW), copied->Cell(kW));
    EXPECT_EQ(kept->Cell(kW).size(), 2u);
  }
}

TEST_F(ExecutorGraphTest, OnlyTheSameBindingsFeedsAreKept) {
  const auto rank = MakeRank();
  const auto one = rank->executor->Prepare("train", Samples(1));
  const auto two = rank->executor->Prepare("train", Samples(2));
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  FeedData again;
  again.name = "x";
  again.kept = true;
  EXPECT_EQ(rank->executor->Execute(*one, {again}).status().message(),
            "entry train: feed x: expected to be there since the step before, "
            "found none; feed its bytes");
  ASSERT_TRUE(rank->executor->Execute(*one, {Feed(x)}).ok());
  EXPECT_TRUE(rank->executor->Execute(*one, {again}).ok());
  EXPECT_THAT(
      std::string(rank->executor->Execute(*two, {again}).status().message()),
      HasSubstr("found one of another binding"));
  EXPECT_TRUE(rank->executor->Execute(*one, {again}).ok());
  // The startup feeds its seed into the same memory.
  ASSERT_TRUE(rank->executor->Derive().ok());
  EXPECT_FALSE(rank->executor->Execute(*one, {again}).ok());
}

TEST_F(ExecutorGraphTest, StagedFeedsArePlanned) {
  const auto rank = MakeRank();
  const auto binding = rank->executor->Prepare("train", Samples(100));
  ASSERT_TRUE(binding.ok()) << binding.status();
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  const Plan& plan = rank->executor->plan(*binding);
  const auto bytes = [&plan](ArenaKind kind) {
    return plan.arena_bytes[static_cast<int>(kind)];
  };
  EXPECT_EQ(bytes(ArenaKind::kStaging), bytes(ArenaKind::kFeed));
  EXPECT_GE(bytes(ArenaKind::kFeed), 800);
  EXPECT_EQ(rank->executor->allocated_bytes(), rank->executor->planned_bytes());
  const int64_t before = device_->allocated_bytes();
  const std::vector<float> x(200, 1);
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(rank->executor->Execute(*binding, {Feed(x)}).ok());
    EXPECT_EQ(device_->allocated_bytes(), before);
  }
}

TEST_F(ExecutorGraphTest, WhatDoesNotFitIsRefusedBeforeTheFirstStep) {
  FakeDeviceOptions options = Deferred();
  options.memory_bytes = 64 << 10;
  TestRank rank(program_.get(), {}, MakeFakeDevice(options),
                MakeSingleCommunicator(), FakeKernels());
  ASSERT_TRUE(rank.status.ok()) << rank.status;
  EXPECT_TRUE(rank.executor->Prepare("train", Samples(10)).ok());
  const absl::Status large =
      rank.executor->Prepare("train", Samples(2500)).status();
  EXPECT_EQ(ExitCodeOf(large), ExitCode::kOutOfMemory);
  EXPECT_THAT(std::string(large.message()),
              AllOf(HasSubstr("entry train with 2500 samples on rank 0"),
                    HasSubstr("f32[2500,2]"), HasSubstr("--batch-size")));

  options.memory_bytes = 256;
  TestRank none(program_.get(), {}, MakeFakeDevice(options),
                MakeSingleCommunicator(), FakeKernels());
  EXPECT_EQ(ExitCodeOf(none.status), ExitCode::kOutOfMemory);
  EXPECT_THAT(std::string(none.status.message()),
              AllOf(HasSubstr("the state alone"), HasSubstr("w f32[2]")));
}

TEST_F(ExecutorGraphTest, AnErrorOfTheDeviceSaysWhenItWasNoticed) {
  const auto rank = MakeRank();
  const auto binding = rank->executor->Prepare("train", Samples(1));
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  ASSERT_TRUE(rank->executor->Execute(*binding, {Feed(x)}).ok());
  device_->Break(DeviceError("an illegal address"));
  const absl::Status status = rank->executor->Read(0).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("entry train"), HasSubstr("step 1"),
                    HasSubstr("an illegal address")));
}

// Its libraries and memory end behind the last steps, though no wait works.
TEST_F(ExecutorGraphTest, ARunThatFailedEndsWhenItsStreamsAreDone) {
  const auto rank = MakeRank();
  const auto binding = rank->executor->Prepare("train", Samples(1));
  ASSERT_TRUE(rank->executor->Initialize(7).ok());
  const std::vector<float> x = {1, 2};
  ASSERT_TRUE(rank->executor->Execute(*binding, {Feed(x)}).ok());
  device_->GiveUpWaits(CommunicationError("rank 1 is gone"));
  EXPECT_FALSE(rank->executor->Read(0).ok());
  const size_t begin = device_->log().size();
  rank->executor.reset();
  for (const char* stream : {"compute", "communicate", "copy_in", "copy_out"}) {
    EXPECT_EQ(Count(absl::StrCat(stream, ": record e"), begin), 1) << stream;
  }
  // Each is asked until it is done: at once where nothing was put off.
  EXPECT_GT(Count("host: query e", begin), 4);
}

// One thread that drives several devices enqueues on the right one.
TEST_F(ExecutorGraphTest, EveryEntryPointMakesItsDeviceCurrent) {
  std::vector<std::unique_ptr<TestRank>> ranks;
  for (int ordinal : {0, 1}) {
    FakeDeviceOptions options = Deferred();
    options.ordinal = ordinal;
    ranks.push_back(std::make_unique<TestRank>(
        program_.get(), ExecutorOptions(), MakeFakeDevice(options),
        MakeSingleCommunicator(), FakeKernels()));
    ASSERT_TRUE(ranks.back()->status.ok()) << ranks.back()->status;
  }
  const auto on_both = [&ranks](auto call) {
    for (auto& rank : ranks) {
      const absl::Status status = call(*rank->executor);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(FakeDevice::CurrentOrdinal(), rank->device->ordinal());
    }
  };
  const std::vector<float> x = {1, 2};
  std::string bytes;
  on_both([](Executor& e) { return e.Prepare("train", Samples(1)).status(); });
  on_both([](Executor& e) { return e.Initialize(7); });
  on_both([](Executor& e) { return e.Derive(); });
  for (int step = 0; step < 3; ++step) {
    on_both([&](Executor& e) { return e.Execute(0, {Feed(x)}).status(); });
  }
  on_both([](Executor& e) { return e.Read(2).status(); });
  on_both([](Executor& e) { return e.FirstNonFinite().status(); });
  on_both([&](Executor& e) { return e.ReadCell(CellId(kW), &bytes); });
  on_both([&](Executor& e) { return e.WriteCell(CellId(kW), bytes); });
  ranks[0]->executor.reset();
  EXPECT_EQ(FakeDevice::CurrentOrdinal(), 0);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
