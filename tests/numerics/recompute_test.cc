// What backward makes again has the bits of what it would have kept: training
// with recompute and without it, at every level, with norms, residual sums and
// dropout; and it takes less memory.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/io/model_printer.h"
#include "graph/io/model_reader.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "tests/support/compile_model.h"
#include "tests/support/run_steps.h"
#include "tools/common/planned_peak.h"

namespace halftone {
namespace {

struct Net {
  std::string name;
  std::string data;
  int64_t batch = 64;
  std::string checkpoints;  // a glob in the middle of the net
};

const Net kNets[] = {
    {"mnist_convnet", "idx:models/digits", 64, "pool1"},
    {"small_resnet", "idx:models/digits", 32, "*/relu2"},
    {"bert_base", "synthetic", 32, "*layer.0.output.LayerNorm"},
};

ModelFile ModelOf(const Net& net) {
  ZooOptions options;
  if (net.name == "bert_base") {
    options.layers = 2;
    options.width = 64;
    options.sequence = 64;
    options.head = "classification";  // its logits are few
  }
  const auto zoo = ZooModel(net.name, options);
  EXPECT_TRUE(zoo.ok()) << zoo.status();
  auto file = ParseModel(PrintModel(*zoo), net.name);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

CompiledModel Compiled(const Net& net, const std::string& level,
                       const std::string& dtype,
                       std::vector<passes::Override> overrides = {}) {
  const auto strategy = passes::ParseStrategy(
      absl::StrCat("amp { level: '", level, "' dtype: '", dtype,
                   "' } optimizer { momentum {} } dist { sync_batch_norm: true "
                   "} train { batch_size: ",
                   net.batch, " }"),
      "test");
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  auto model = CompileModel(ModelOf(net), *strategy, overrides);
  EXPECT_TRUE(model.ok()) << net.name << ": " << model.status();
  return *std::move(model);
}

int Copies(const CompiledModel& model) {
  const Block& block = model.program->FindEntry("train")->block();
  int copies = 0;
  for (OpId id : block.ops()) {
    copies += block.op(id).decision.reason == Reason::kRecomputed;
  }
  return copies;
}

absl::StatusOr<int64_t> PeakOf(const Program& program, int64_t samples) {
  return tools::PeakOf(program, "cpu", "train", samples);
}

int64_t Peak(const CompiledModel& model, int64_t samples) {
  const auto peak = PeakOf(*model.program, samples);
  EXPECT_TRUE(peak.ok()) << peak.status();
  return peak.ok() ? *peak : 0;
}

StepsResult Steps(const Net& net, const CompiledModel& model, int ranks) {
  StepsSpec spec;
  spec.ranks = ranks;
  spec.batch = net.batch;
  spec.data = net.data;
  spec.steps = 3;
  const auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << net.name << ": " << result.status();
  return result.ok() ? *result : StepsResult();
}

void ExpectSame(const Net& net, const std::string& level,
                const std::string& dtype, int ranks = 1) {
  const std::string at = absl::StrCat(net.name, " ", level, " ", dtype);
  const CompiledModel plain = Compiled(net, level, dtype);
  EXPECT_EQ(Copies(plain), 0);
  const StepsResult expected = Steps(net, plain, ranks);
  const int64_t peak = Peak(plain, net.batch);
  const std::vector<passes::Override> ways[] = {
      {{"memory.recompute.checkpoints", net.checkpoints, "--set"}},
      {{"memory.recompute.within", "256KiB", "--set"}},
      {{"memory.recompute.within", "1", "--set"}},
  };
  int64_t least = peak;
  for (const auto& way : ways) {
    const CompiledModel model = Compiled(net, level, dtype, way);
    EXPECT_GT(Copies(model), 0) << at << " " << way[0].value;
    least = std::min(least, Peak(model, net.batch));
    const StepsResult found = Steps(net, model, ranks);
    EXPECT_EQ(found.losses, expected.losses) << at << " " << way[0].value;
    EXPECT_TRUE(found.cells == expected.cells) << at << " " << way[0].value;
  }
  // The small nets of images need most in their first layers, whose backward
  // has all of them there again.
  if (net.name == "bert_base") {
    EXPECT_LT(least, peak) << at;
  }
}

TEST(Recompute, ChangesNoBitAtO0) {
  for (const Net& net : kNets) ExpectSame(net, "O0", "fp16");
}

TEST(Recompute, ChangesNoBitAtO1InF16) {
  for (const Net& net : kNets) ExpectSame(net, "O1", "fp16");
}

TEST(Recompute, ChangesNoBitAtO1InBf16) {
  for (const Net& net : kNets) ExpectSame(net, "O1", "bf16");
}

TEST(Recompute, ChangesNoBitAtO2) {
  for (const Net& net : kNets) ExpectSame(net, "O2", "fp16");
}

absl::StatusOr<CompiledModel> CompiledWithin(const Net& net,
                                             const std::string& budget) {
  const auto strategy = passes::ParseStrategy(
      absl::StrCat("optimizer { momentum {} } train { batch_size: ", net.batch,
                   " memory_budget: '", budget, "' }"),
      "test");
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  const auto options = passes::ResolveOptions(*strategy, {});
  EXPECT_TRUE(options.ok()) << options.status();
  passes::CompileFlags flags;
  flags.planned_peak = [](const Program& program, int64_t samples) {
    return PeakOf(program, samples);
  };
  return passes::Compile(ModelOf(net), *options,
                         passes::KernelSet("cpu", kernels::Kernels().Keys()),
                         flags);
}

TEST(Recompute, MeetsABudget) {
  const Net& net = kNets[2];
  const auto plain = CompiledWithin(net, "1GiB");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(Copies(*plain), 0);
  const int64_t peak = Peak(*plain, net.batch);
  const int64_t least = Peak(
      Compiled(net, "O0", "fp16", {{"memory.recompute.within", "1", "--set"}}),
      net.batch);
  ASSERT_LT(least, peak);
  const int64_t budget = least + (peak - least) / 2;
  const auto fitted = CompiledWithin(net, absl::StrCat(budget));
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_GT(Copies(*fitted), 0);
  EXPECT_LE(Peak(*fitted, net.batch), budget);
}

TEST(Recompute, RefusesABudgetThatCannotBeMet) {
  const auto refused = CompiledWithin(kNets[2], "64KiB");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::AllOf(::testing::HasSubstr(
                                   "train.memory_budget: 64.0 KiB cannot be "
                                   "met at 32 samples on one rank: it needs"),
                               ::testing::HasSubstr("with recompute")));
}

// Statistics are combined once: a copy communicates nothing.
TEST(Recompute, ChangesNoBitOnTwoRanks) {
  ExpectSame(kNets[1], "O1", "fp16", 2);
}

}  // namespace
}  // namespace halftone
