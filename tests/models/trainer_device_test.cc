// The trainer on devices that work asynchronously gives the CPU's bits: a
// model's whole run, with graphs and, where ranks share a device, without.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/collective/forwarding_communicator.h"
#include "runtime/collective/staged_communicator.h"
#include "runtime/device/fake_device.h"
#include "runtime/exec/executor_testing.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

// As NCCL's; but what it does while capturing fails.
class Enqueues : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  bool enqueues() const override { return true; }
};

// Fake devices that put everything off, and their ranks.
struct FakeRanks {
  explicit FakeRanks(int ranks, bool enqueue = false) {
    for (auto& host : MakeInProcessCommunicators(ranks, absl::Seconds(60))) {
      FakeDeviceOptions options;
      options.deferred = true;
      auto device = MakeFakeDevice(options);
      if (ranks == 1) {
        communicators.push_back(MakeSingleCommunicator());
      } else {
        auto staged = MakeStagedCommunicator(std::move(host), device.get());
        EXPECT_TRUE(staged.ok()) << staged.status();
        communicators.push_back(*std::move(staged));
        if (enqueue) {
          communicators.back() =
              std::make_unique<Enqueues>(std::move(communicators.back()));
        }
      }
      devices.push_back(std::move(device));
      resources.push_back({devices.back().get(), communicators.back().get()});
    }
  }
  int Launches(int rank) const {
    const std::vector<std::string>& log = devices[rank]->log();
    return static_cast<int>(
        std::count_if(log.begin(), log.end(), [](const std::string& line) {
          return line.find(": launch on compute") != std::string::npos;
        }));
  }

  std::vector<std::unique_ptr<FakeDevice>> devices;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<RankResources> resources;
};

absl::Status TrainOnFake(const CompiledModel& model, const TrainConfig& config,
                         const FakeRanks& ranks) {
  int signal = 0;
  return Train(*model.program, FakeKernels(), config, ranks.resources, &signal);
}

class OnDevices : public ::testing::TestWithParam<int> {
 protected:
  static void ExpectSameRun(const std::string& a, const std::string& b) {
    const Checkpoint x = Newest(a), y = Newest(b);
    ASSERT_EQ(x.tensors.size(), y.tensors.size());
    EXPECT_GT(x.tensors.size(), 0u);
    for (size_t i = 0; i < x.tensors.size(); ++i) {
      EXPECT_EQ(x.tensors[i].name, y.tensors[i].name);
      EXPECT_TRUE(x.tensors[i].bytes == y.tensors[i].bytes)
          << x.tensors[i].name;
    }
    for (const char* kind : {"step", "eval", "skip"}) {
      EXPECT_EQ(Events(a, kind), Events(b, kind)) << kind;
    }
  }
  static void ExpectTheCpusBits(const absl::StatusOr<CompiledModel>& model,
                                int ranks) {
    ASSERT_TRUE(model.ok()) << model.status();
    const std::string out = FreshDirectory();
    TrainConfig config = ConfigOf(*model, "synthetic:158", out + ".cpu");
    config.log_every = 1;
    ASSERT_TRUE(TrainOn(*model, config, ranks).status.ok());

    config.out = out + ".graphs";
    const FakeRanks fake(ranks);
    const absl::Status trained = TrainOnFake(*model, config, fake);
    ASSERT_TRUE(trained.ok()) << trained;
    ExpectSameRun(out + ".cpu", config.out);
    // All but the first step of each size, and of each size in evals.
    EXPECT_EQ(fake.Launches(0) > 0, ranks == 1);

    config.out = out + ".no_graphs";
    config.use_graphs = false;
    const FakeRanks single(ranks);
    ASSERT_TRUE(TrainOnFake(*model, config, single).ok());
    ExpectSameRun(out + ".cpu", config.out);
    EXPECT_EQ(single.Launches(0), 0);
  }
};

TEST_P(OnDevices, AWholeRunHasTheCpusBits) {
  // Batches of 16 and a tail of 14; evals between them.
  ExpectTheCpusBits(CompileText(kScaleModel, kScaleStrategy,
                                {"amp.level=O1", "train.epochs=3"}),
                    GetParam());
}

// Micro-batches come between a step's results, and their feeds by slots of
// their own: here from 6 samples on, and of a tail of 14 from 5 on.
TEST_P(OnDevices, ARunOfMicroBatchesHasTheCpusBits) {
  ExpectTheCpusBits(CompileText(kScaleModel, kScaleStrategy,
                                {"amp.level=O1", "train.epochs=3",
                                 "dist.gradient_merge.k_steps=3"}),
                    GetParam());
}

// A graph's launch may block there until another rank's has begun.
TEST(RanksOfOneProcess, CaptureNoCollectives) {
  const auto model = CompileText(kScaleModel, kScaleStrategy, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const TrainConfig config =
      ConfigOf(*model, "synthetic:158", FreshDirectory() + ".threads");
  ASSERT_TRUE(config.use_graphs);
  const FakeRanks fake(2, /*enqueue=*/true);
  const absl::Status trained = TrainOnFake(*model, config, fake);
  ASSERT_TRUE(trained.ok()) << trained;
  EXPECT_EQ(fake.Launches(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, OnDevices, ::testing::Values(1, 2));

}  // namespace
}  // namespace runtime
}  // namespace halftone
