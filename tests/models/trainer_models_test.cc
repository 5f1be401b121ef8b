// The models of models/ on real digits: ranks equal one, mixed precision
// learns, a bad gradient leaves even the running statistics alone.
#include <cmath>
#include <filesystem>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "tests/models/faulty_communicator.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kConvNet[] = "models/mnist_convnet.pbtxt";
constexpr char kMlp[] = "models/mlp.pbtxt";
constexpr char kDigits[] = "idx:models/digits";

CompiledModel MustCompile(const std::string& model, const std::string& strategy,
                          const std::vector<std::string>& overrides) {
  auto compiled = CompileFile(model, strategy, overrides);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? *std::move(compiled) : CompiledModel();
}

// FP32 with synchronised batch norm: 2 ranks of 32 do what 1 rank of 64 does,
// but for the order of sums.
struct Equality {
  const char* name;
  const char* model;
  // Relative, of a step's loss: in the first three steps, and up to step 46.
  double first, all;
};
class TwoRanksEqualOne : public ::testing::TestWithParam<Equality> {};

TEST_P(TwoRanksEqualOne, ToRounding) {
  const CompiledModel model =
      MustCompile(GetParam().model, "models/mnist_fp32.pbtxt",
                  {"train.epochs=2", "dist.sync_batch_norm=true"});
  ASSERT_NE(model.program, nullptr);
  TrainConfig one = ConfigOf(model, kDigits, FreshDirectory() + ".one");
  TrainConfig two = ConfigOf(model, kDigits, FreshDirectory() + ".two");
  one.log_every = two.log_every = 1;
  ASSERT_TRUE(TrainOn(model, one, 1).status.ok());
  ASSERT_TRUE(TrainOn(model, two, 2).status.ok());
  const std::vector<Json> a = Events(one.out, "step");
  const std::vector<Json> b = Events(two.out, "step");
  ASSERT_EQ(a.size(), 46u);
  ASSERT_EQ(b.size(), 46u);
  for (size_t i = 0; i < a.size(); ++i) {
    const double loss = a[i]["loss"];
    EXPECT_EQ(a[i]["n"], b[i]["n"]);
    const double tolerance = i < 3 ? GetParam().first : GetParam().all;
    EXPECT_NEAR(loss, b[i]["loss"].get<double>(), tolerance * loss)
        << "step " << i + 1;
  }
}

// A step's rounding is some 1e-7. The perceptron keeps it there (2e-7 seen).
// In the ConvNet max-pooling and relu choose otherwise for it sooner or later,
// and what follows is another run: a learning rate one unit in the last place
// lower, on one rank, moves a loss of the same 46 steps by up to 7e-2 of it,
// and at the same steps as two ranks do, 8e-2 (three seeds, up to 1.4e-1). So
// the bound on all steps says only that it learns as much; that each step is
// the same is what ConvNetInStep says.
INSTANTIATE_TEST_SUITE_P(Models, TwoRanksEqualOne,
                         ::testing::Values(Equality{"Mlp", kMlp, 1e-6, 2e-6},
                                           Equality{"ConvNet", kConvNet, 1e-6,
                                                    1.5e-1}),
                         [](const ::testing::TestParamInfo<Equality>& info) {
                           return std::string(info.param.name);
                         });

// From what one rank had after step k two ranks take the same next step, early
// and late: its loss, its gradients, and what follows from them.
TEST(ConvNetInStep, TwoRanksGoOnAsOne) {
  const CompiledModel model =
      MustCompile(kConvNet, "models/mnist_fp32.pbtxt",
                  {"train.epochs=2", "dist.sync_batch_norm=true"});
  ASSERT_NE(model.program, nullptr);
  TrainConfig one = ConfigOf(model, kDigits, FreshDirectory() + ".one");
  one.log_every = 1;
  one.checkpoint_every = {Cadence::Unit::kSteps, 1};
  one.keep_checkpoints = 100;
  ASSERT_TRUE(TrainOn(model, one, 1).status.ok());
  const std::vector<Json> all = Events(one.out, "step");
  ASSERT_EQ(all.size(), 46u);
  for (const size_t k : {1, 8, 15, 24, 33, 41}) {
    SCOPED_TRACE(absl::StrCat("after step ", k));
    TrainConfig two = one;
    two.out = absl::StrCat(FreshDirectory(), ".two-", k);
    two.resume = true;
    const std::string checkpoint = absl::StrCat("/ckpt/step-", k);
    std::filesystem::create_directories(two.out + "/ckpt");
    std::filesystem::copy(one.out + checkpoint, two.out + checkpoint);
    std::filesystem::copy(one.out + "/metrics.jsonl",
                          two.out + "/metrics.jsonl");
    const absl::Status status = TrainOn(model, two, 2).status;
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<Json> steps = Events(two.out, "step");
    ASSERT_EQ(steps.size(), 46u);
    const Json &found = steps[k], &expected = all[k];
    ASSERT_EQ(found["step"], k + 1);
    EXPECT_EQ(found["n"], expected["n"]);
    const double loss = expected["loss"], norm = expected["grad_norm"];
    // 4e-7 seen, of all three.
    EXPECT_NEAR(found["loss"].get<double>(), loss, 2e-6 * loss);
    EXPECT_NEAR(found["grad_norm"].get<double>(), norm, 1e-5 * norm);
    // 9e-7 seen; a choice between near maxima may move a pixel's gradient.
    const double next = all[k + 1]["loss"];
    EXPECT_NEAR(steps[k + 1]["loss"].get<double>(), next, 1e-4 * next);
  }
}

// One epoch brings any level well beyond chance.
class Levels : public ::testing::TestWithParam<const char*> {};

TEST_P(Levels, LearnDigitsOnTwoRanks) {
  const CompiledModel model =
      MustCompile(kConvNet, absl::StrCat("models/mnist_", GetParam(), ".pbtxt"),
                  {"train.epochs=1"});
  ASSERT_NE(model.program, nullptr);
  TrainConfig config = ConfigOf(model, kDigits, FreshDirectory());
  const Trained trained = TrainOn(model, config, 2);
  ASSERT_TRUE(trained.status.ok()) << trained.status;
  const Json summary = Summary(config.out);
  EXPECT_EQ(summary["metrics"]["top1"]["total"], 359);
  // Another framework's FP32 run reaches 85 to 92 % after one epoch.
  EXPECT_GT(summary["metrics"]["top1"]["value"].get<double>(), 0.7);
  EXPECT_EQ(summary["steps_attempted"], 23);
  for (const int ranks : {1, 3}) {
    const auto report = EvaluateOn(model, config, ranks);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->samples, 359);
    // Batches are cut otherwise, but every sample is alone in its result.
    EXPECT_NEAR(report->metrics.at("top1").correct,
                summary["metrics"]["top1"]["correct"].get<double>(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Levels,
                         ::testing::Values("fp32", "o1", "o1_bf16", "o2",
                                           "o2_bf16", "o3"),
                         [](const ::testing::TestParamInfo<const char*>& p) {
                           return std::string(p.param);
                         });

// The third of six steps is spoilt on rank 1: weights, velocities, running
// statistics and the applied clock stay what they were, bit for bit, and the
// ranks end equal.
class ConvNetAllOrNothing : public ::testing::TestWithParam<const char*> {};

TEST_P(ConvNetAllOrNothing, ABadGradientOnOneRankChangesNothing) {
  const CompiledModel model =
      MustCompile(kConvNet, absl::StrCat("models/mnist_", GetParam(), ".pbtxt"),
                  {"train.epochs=1", "train.batch_size=16"});
  ASSERT_NE(model.program, nullptr);
  TrainConfig config = ConfigOf(model, "synthetic:96", FreshDirectory());
  config.checkpoint_every = {Cadence::Unit::kSteps, 1};
  config.keep_checkpoints = 100;
  // Reductions of gradients per step: spoil the first one of step 3.
  int reductions = 0;
  const Entry& train = *model.program->FindEntry("train");
  for (const OpId id : train.block().ops()) {
    const Op& op = train.block().op(id);
    if (op.schema->name() == "all_reduce" &&
        std::get<std::string>(GetAttr(op, "of")) == "gradient") {
      ++reductions;
    }
  }
  ASSERT_GT(reductions, 0);
  const int spoilt = 2 * reductions;
  const Trained trained = TrainOn(
      model, config, 2, [&](int rank, std::unique_ptr<Communicator> inner) {
        return absl::make_unique<FaultyCommunicator>(
            std::move(inner), rank == 1 ? spoilt : 100000, spoilt + 1);
      });
  ASSERT_TRUE(trained.status.ok()) << trained.status;
  EXPECT_EQ(Summary(config.out)["steps_skipped"], 1);
  ASSERT_EQ(Events(config.out, "skip").size(), 1u);
  EXPECT_EQ(Events(config.out, "skip")[0]["step"], 3);

  const auto before = ReadCheckpoint(config.out + "/ckpt/step-2");
  const auto after = ReadCheckpoint(config.out + "/ckpt/step-3");
  const auto next = ReadCheckpoint(config.out + "/ckpt/step-4");
  ASSERT_TRUE(before.ok() && after.ok() && next.ok());
  int applied = 0, statistics = 0, moved = 0;
  for (size_t i = 0; i < before->tensors.size(); ++i) {
    const Tensor& tensor = before->tensors[i];
    const Cell& cell =
        model.program->cell(model.program->FindCell(tensor.name));
    if (cell.commit != Commit::kApplied) continue;
    ++applied;
    statistics += cell.kind == CellKind::kStatistic;
    EXPECT_TRUE(tensor.bytes == after->tensors[i].bytes) << tensor.name;
    moved += tensor.bytes != next->tensors[i].bytes;
  }
  EXPECT_GE(statistics, 4);
  // And the step after it moves them, but for a bias or two before a batch
  // norm, whose gradient is nothing but rounding.
  EXPECT_GE(moved, applied - 2);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ConvNetAllOrNothing,
                         ::testing::Values("fp32", "o1", "o2"),
                         [](const ::testing::TestParamInfo<const char*>& p) {
                           return std::string(p.param);
                         });

}  // namespace
}  // namespace runtime
}  // namespace halftone
