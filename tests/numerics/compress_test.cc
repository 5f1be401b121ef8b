// Training on values of few bits: forward is what it was, gradients are near
// what they were, runs repeat to the bit, and memory is saved.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/io/model_printer.h"
#include "graph/io/model_reader.h"
#include "graph/schema/op_registry.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "tests/support/compile_model.h"
#include "tests/support/run_steps.h"
#include "tools/common/planned_peak.h"

namespace halftone {
namespace {

constexpr int64_t kBatch = 32;

ModelFile FromZoo(const std::string& name, const ZooOptions& options) {
  const auto zoo = ZooModel(name, options);
  EXPECT_TRUE(zoo.ok()) << zoo.status();
  auto file = ParseModel(PrintModel(*zoo), name);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

ModelFile SmallResNet() { return FromZoo("small_resnet", ZooOptions()); }

// Of many layers, so that what they keep decides, not the workspace of one,
// which differs from processor to processor.
ModelFile ManyLayers() {
  ZooOptions options;
  options.image_size = 64;
  options.classes = 10;
  return FromZoo("mobilenet_v2", options);
}

passes::StrategyFile Strategy(const std::string& more) {
  const auto strategy = passes::ParseStrategy(
      absl::StrCat("optimizer { momentum {} } train { batch_size: ", kBatch,
                   " } ", more),
      "test");
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  return *strategy;
}

CompiledModel Compiled(const std::string& more,
                       ModelFile file = SmallResNet()) {
  auto model = CompileModel(std::move(file), Strategy(more), {});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

std::string InBits(int bits) {
  return absl::StrCat("memory { compress { bits: ", bits, " } }");
}

int Packed(const CompiledModel& model) {
  return model.program->FindEntry("train")->block().CountOf(
      Ops().Find("quantize_groups"));
}

absl::StatusOr<int64_t> PeakOf(const Program& program, int64_t samples) {
  return tools::PeakOf(program, "cpu", "train", samples);
}

StepsResult Steps(const CompiledModel& model, int ranks = 1) {
  StepsSpec spec;
  spec.ranks = ranks;
  spec.batch = kBatch;
  spec.data = "idx:models/digits";
  spec.steps = 4;
  const auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : StepsResult();
}

TEST(Compress, LeavesForwardAndTrainsNearby) {
  const StepsResult plain = Steps(Compiled(""));
  for (const int bits : {8, 4, 2}) {
    const CompiledModel model = Compiled(InBits(bits));
    EXPECT_GT(Packed(model), 5);
    const StepsResult found = Steps(model);
    ASSERT_EQ(found.losses.size(), plain.losses.size());
    EXPECT_NEAR(found.losses[0], plain.losses[0], 1e-5) << bits;
    EXPECT_NE(found.losses, plain.losses) << bits;
    for (size_t i = 1; i < plain.losses.size(); ++i) {
      // A few steps, whose gradients have the noise of 1 / 2^bits of a range.
      EXPECT_NEAR(found.losses[i], plain.losses[i], bits == 8 ? 0.02 : 0.5)
          << bits << " bits, step " << i;
    }
  }
}

TEST(Compress, RepeatsItsBits) {
  const CompiledModel model = Compiled(InBits(2));
  const StepsResult once = Steps(model), again = Steps(model);
  EXPECT_EQ(once.losses, again.losses);
  EXPECT_TRUE(once.cells == again.cells);
}

// What is drawn belongs to the sample, wherever it is.
TEST(Compress, DrawsTheSameOnTwoRanks) {
  const CompiledModel model =
      Compiled(absl::StrCat(InBits(2), " dist { sync_batch_norm: true }"));
  const StepsResult one = Steps(model), two = Steps(model, 2);
  ASSERT_EQ(one.losses.size(), two.losses.size());
  for (size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(one.losses[i], two.losses[i], 0.02) << i;
  }
}

TEST(Compress, TakesLessMemory) {
  const auto peak = [](const CompiledModel& model) {
    const auto bytes = PeakOf(*model.program, kBatch);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return static_cast<double>(*bytes);
  };
  const double plain = peak(Compiled("", ManyLayers()));
  const double eight = peak(Compiled(InBits(8), ManyLayers()));
  const double two = peak(Compiled(InBits(2), ManyLayers()));
  EXPECT_LT(eight, plain);
  EXPECT_LT(two, eight);
}

absl::StatusOr<CompiledModel> Within(int64_t budget) {
  const auto options = passes::ResolveOptions(
      Strategy(InBits(2)),
      {{"train.memory_budget", absl::StrCat(budget), "--set"}});
  EXPECT_TRUE(options.ok()) << options.status();
  passes::CompileFlags flags;
  flags.planned_peak = PeakOf;
  return passes::Compile(ManyLayers(), *options,
                         passes::KernelSet("cpu", kernels::Kernels().Keys()),
                         flags);
}

// What fits is kept as it is; else one choice weighs recompute and few bits.
TEST(Compress, IsChosenByABudget) {
  const int64_t plain = *PeakOf(*Compiled("", ManyLayers()).program, kBatch);
  const auto roomy = Within(plain);
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_EQ(Packed(*roomy), 0);
  const int64_t budget = plain * 9 / 10;
  const auto fitted = Within(budget);
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_LE(*PeakOf(*fitted->program, kBatch), budget);
  const auto refused = Within(plain / 100);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::HasSubstr("with recompute and 2 bits"));
}

}  // namespace
}  // namespace halftone
