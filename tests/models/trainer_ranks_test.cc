// Several ranks: equal to one, all or nothing, any number of samples.
#include <cmath>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/models/faulty_communicator.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

CompiledModel ScaleModel(const std::vector<std::string>& overrides = {}) {
  auto model = CompileText(kScaleModel, kScaleStrategy, overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

void ExpectNear(const Checkpoint& a, const Checkpoint& b,
                const std::string& name, float tolerance) {
  const std::vector<float> x = Values(a, name), y = Values(b, name);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], y[i], tolerance) << name << "[" << i << "]";
  }
}

// ---- The exact tail: loss and gradient are those of one device with the
// whole batch, also where ranks are left without a sample.

struct Tail {
  int samples, batch, ranks;
};
class ExactTail : public ::testing::TestWithParam<Tail> {};

TEST_P(ExactTail, EqualsOneRankWithTheWholeBatch) {
  const Tail& tail = GetParam();
  const CompiledModel model =
      ScaleModel({absl::StrCat("train.batch_size=", tail.batch)});
  const std::string data = absl::StrCat("synthetic:", tail.samples);
  TrainConfig one = ConfigOf(model, data, FreshDirectory() + "/one");
  TrainConfig many = ConfigOf(model, data, FreshDirectory() + "/many");
  one.log_every = many.log_every = 1;
  ASSERT_TRUE(TrainOn(model, one, 1).status.ok());
  const absl::Status status = TrainOn(model, many, tail.ranks).status;
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<Json> a = Events(one.out, "step");
  const std::vector<Json> b = Events(many.out, "step");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i]["n"], b[i]["n"]);
    // Sums of at most 31 f32 losses in another order: a few units in the
    // last place.
    EXPECT_NEAR(a[i]["loss"], b[i]["loss"], 1e-5);
    EXPECT_NEAR(a[i]["grad_norm"], b[i]["grad_norm"], 1e-5);
  }
  ExpectNear(Newest(one.out), Newest(many.out), "w", 1e-5);
  EXPECT_EQ(Summary(one.out)["metrics"], Summary(many.out)["metrics"]);
}

INSTANTIATE_TEST_SUITE_P(Tails, ExactTail,
                         ::testing::Values(Tail{30, 16, 2}, Tail{31, 16, 2},
                                           Tail{1, 1, 2}, Tail{1, 1, 8},
                                           Tail{31, 31, 8}, Tail{17, 16, 3}),
                         [](const ::testing::TestParamInfo<Tail>& info) {
                           return absl::StrCat(info.param.samples, "On",
                                               info.param.ranks);
                         });

// Two towers over the same samples, one after the other along the batch: what
// comes back to each is cut at a place that only the step knows.
constexpr char kTowers[] = R"(
name: "towers"
feed { name: "x" dims: [-1, 10] }
param { name: "w" dims: [10] init { uniform { bound: 1 } } }
param { name: "v" dims: [10] init { uniform { bound: 1 } } }
op { type: "elementwise_mul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "a" } }
op { type: "elementwise_mul" in { slot: "X" var: "x" } in { slot: "Y" var: "v" } out { slot: "Out" var: "b" } }
op { type: "tanh" in { slot: "X" var: "b" } out { slot: "Out" var: "t" } }
op { type: "concat" in { slot: "X" var: "a" var: "t" var: "a" } out { slot: "Out" var: "c" } attr { name: "axis" i: 0 } }
op { type: "square" in { slot: "X" var: "c" } out { slot: "Out" var: "s" } }
op { type: "mean" in { slot: "X" var: "s" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "s" }
)";

TEST(BatchConcat, GradientsAreThoseOfOneRank) {
  for (const char* level : {"O0", "O1", "O2"}) {
    const auto model =
        CompileText(kTowers, kScaleStrategy,
                    {"train.batch_size=16", absl::StrCat("amp.level=", level)});
    ASSERT_TRUE(model.ok()) << model.status();
    TrainConfig one =
        ConfigOf(*model, "synthetic:31", FreshDirectory() + level + "one");
    TrainConfig two =
        ConfigOf(*model, "synthetic:31", FreshDirectory() + level + "two");
    const absl::Status alone = TrainOn(*model, one, 1).status;
    ASSERT_TRUE(alone.ok()) << alone;
    const absl::Status both = TrainOn(*model, two, 2).status;
    ASSERT_TRUE(both.ok()) << both;
    // Low gradients of both ranks are rounded before they are added.
    const float tolerance = level == std::string("O0") ? 1e-5f : 2e-3f;
    for (const char* name : {"w", "v"}) {
      ExpectNear(Newest(one.out), Newest(two.out), name, tolerance);
    }
  }
}

TEST(OtherTails, PadAndDropTakeEqualShares) {
  for (const std::string tail : {"pad", "drop"}) {
    const CompiledModel model =
        ScaleModel({"train.tail=" + tail, "train.epochs=1"});
    TrainConfig config =
        ConfigOf(model, "synthetic:31", FreshDirectory() + tail);
    config.log_every = 1;
    ASSERT_TRUE(TrainOn(model, config, 2).status.ok());
    double n = 0;
    for (const Json& event : Events(config.out, "step")) {
      n += event["n"].get<double>();
    }
    EXPECT_EQ(n, tail == "pad" ? 32 : 30);
  }
}

// ---- A step is all or nothing.

struct Spoiled {
  float value;
  const char* says;
};
class AllOrNothing : public ::testing::TestWithParam<Spoiled> {};

// One rank's share of the last step's gradients is spoilt: no cell of class
// `applied` changes on any rank. That ranks are equal, bit for bit, the run
// checks itself at its end.
TEST_P(AllOrNothing, ABadGradientOnOneRankChangesNothing) {
  const CompiledModel model = ScaleModel({"train.epochs=1"});
  TrainConfig config = ConfigOf(model, "synthetic:80", FreshDirectory());
  config.checkpoint_every = {Cadence::Unit::kSteps, 1};
  config.keep_checkpoints = 100;
  const int64_t last = 5;
  const Trained trained = TrainOn(
      model, config, 3, [&](int rank, std::unique_ptr<Communicator> inner) {
        return absl::make_unique<FaultyCommunicator>(std::move(inner),
                                                     rank == 1 ? last - 1 : 100,
                                                     last, GetParam().value);
      });
  ASSERT_TRUE(trained.status.ok()) << trained.status;
  const Json summary = Summary(config.out);
  EXPECT_EQ(summary["steps_attempted"], last);
  EXPECT_EQ(summary["steps_applied"], last - 1);
  const std::vector<Json> skips = Events(config.out, "skip");
  ASSERT_EQ(skips.size(), 1u);
  EXPECT_EQ(skips[0]["step"], last);
  EXPECT_EQ(skips[0]["first_bad"], GetParam().says);

  const auto before =
      ReadCheckpoint(absl::StrCat(config.out, "/ckpt/step-", last - 1));
  const auto after =
      ReadCheckpoint(absl::StrCat(config.out, "/ckpt/step-", last));
  ASSERT_TRUE(before.ok() && after.ok());
  ASSERT_EQ(before->tensors.size(), after->tensors.size());
  int applied = 0;
  for (size_t i = 0; i < before->tensors.size(); ++i) {
    const Tensor& tensor = before->tensors[i];
    const CellId cell = model.program->FindCell(tensor.name);
    ASSERT_TRUE(cell.valid());
    if (model.program->cell(cell).commit != Commit::kApplied) continue;
    ++applied;
    EXPECT_TRUE(tensor.bytes == after->tensors[i].bytes) << tensor.name;
  }
  EXPECT_GE(applied, 5);  // w, b, their velocities, the applied clock
  const auto clock = [](const Checkpoint& c) {
    for (const Tensor& t : c.tensors) {
      if (t.name == "@attempted") return t.bytes[0];
    }
    return char{0};
  };
  EXPECT_EQ(clock(*after), clock(*before) + 1);
}

INSTANTIATE_TEST_SUITE_P(
    Values, AllOrNothing,
    ::testing::Values(
        Spoiled{std::numeric_limits<float>::infinity(), "b.grad has inf"},
        Spoiled{std::numeric_limits<float>::quiet_NaN(), "b.grad has nan"}));

// ---- A rank that fails takes the others with it, and the error is its own.

TEST(RankErrors, AreWhatTheRunReturns) {
  const CompiledModel model = ScaleModel();
  TrainConfig config = ConfigOf(model, "idx:nowhere", "");
  const absl::Status data = TrainOn(model, config, 3).status;
  EXPECT_EQ(ExitCodeOf(data), ExitCode::kModel) << data;
  EXPECT_THAT(std::string(data.message()),
              ::testing::HasSubstr("idx data feeds image and label"));

  config.data = "synthetic:8";
  const absl::Status batch = TrainOn(model, config, 2).status;
  EXPECT_EQ(ExitCodeOf(batch), ExitCode::kModel) << batch;
  EXPECT_THAT(std::string(batch.message()),
              ::testing::HasSubstr("train.batch_size 16: the data has 8"));
}

// A device on which nothing fits.
class FullDevice : public Device {
 public:
  explicit FullDevice(std::unique_ptr<Device> inner)
      : inner_(std::move(inner)) {}
  absl::string_view kind() const override { return inner_->kind(); }
  int ordinal() const override { return inner_->ordinal(); }
  std::string Description() const override { return inner_->Description(); }
  std::string target() const override { return inner_->target(); }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    return inner_->Allocate(bytes);
  }
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(
      int64_t bytes) override {
    return inner_->AllocatePinned(bytes);
  }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(
      absl::string_view name) override {
    return inner_->CreateStream(name);
  }
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    return inner_->CreateEvent();
  }
  absl::StatusOr<std::unique_ptr<Graph>> Capture(
      Stream& stream, const std::function<absl::Status()>& enqueue) override {
    return inner_->Capture(stream, enqueue);
  }
  absl::StatusOr<int64_t> FreeBytes() override { return 1; }

 private:
  std::unique_ptr<Device> inner_;
};

TEST(RankErrors, APlanThatDoesNotFitOnOneRankEndsAll) {
  const CompiledModel model = ScaleModel();
  TrainConfig config = ConfigOf(model, "synthetic:64", FreshDirectory());
  const Trained trained = TrainOn(
      model, config, 2, nullptr, [](int rank, std::unique_ptr<Device> inner) {
        if (rank == 0) return inner;
        return std::unique_ptr<Device>(
            absl::make_unique<FullDevice>(std::move(inner)));
      });
  EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kOutOfMemory)
      << trained.status;
  EXPECT_THAT(std::string(trained.status.message()),
              ::testing::HasSubstr("on rank 1"));
  // Nothing was written before it was refused.
  EXPECT_FALSE(ReadFile(config.out + "/strategy.pbtxt").ok());
}

// ---- The stop rule ends all ranks after the same step.

TEST(StopRuleOnRanks, EndsTheRunWithAReport) {
  const CompiledModel model = ScaleModel({"train.epochs=20"});
  TrainConfig config = ConfigOf(model, "synthetic:160", FreshDirectory());
  config.strategy.mutable_train()->mutable_stop_rule()->set_skipped_in_a_row(6);
  const Trained trained = TrainOn(
      model, config, 2, [](int rank, std::unique_ptr<Communicator> inner) {
        return absl::make_unique<FaultyCommunicator>(
            std::move(inner), rank == 1 ? 12 : 1000, 1000);
      });
  EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kDiverged) << trained.status;
  EXPECT_THAT(std::string(trained.status.message()),
              ::testing::AllOf(::testing::HasSubstr("diverged at step 18"),
                               ::testing::HasSubstr("6 skipped steps in a row"),
                               ::testing::HasSubstr("try ")));
  EXPECT_EQ(Summary(config.out)["exit"], 5);
  EXPECT_EQ(Events(config.out, "skip").size(), 8u);  // two more were under way
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
