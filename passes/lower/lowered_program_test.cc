// What is left of whole models once every pass has run.
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/io/model_reader.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "passes/lower/fuse.h"
#include "passes/lower/generate_startup.h"
#include "passes/lower/keep_relu_bits.h"
#include "passes/lower/split_batch_norm.h"
#include "passes/named_passes.h"
#include "passes/options/options.h"
#include "passes/pipelines.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

KernelSet Kernels() {
  TestTarget target;
  target.patterns = {"conv_bias_relu", "matmul_bias_relu", "elementwise_chain"};
  return AllKernels(target);
}

// A GPU's: every pattern but those that only CPUs have; images in
// channels_last.
KernelSet GpuKernels() {
  TestTarget target;
  target.name = "sm_90";
  for (const FusionPattern& pattern : FusionPatterns()) {
    if (absl::StartsWith(pattern.name(), "recompute_")) continue;
    const bool half_alone =
        pattern.name() == "conv_grad_norm" || !pattern.rounds().empty();
    target.patterns.push_back(
        absl::StrCat(pattern.name(), half_alone ? "(f16)@channels_last" : ""));
  }
  return AllKernels(target);
}

// The model after all passes, verified after each of them.
std::unique_ptr<Program> Lower(const std::string& model,
                               const std::vector<Override>& overrides,
                               const KernelSet& kernels = Kernels()) {
  const auto read = ReadModel(absl::StrCat("models/", model, ".pbtxt"));
  EXPECT_TRUE(read.ok()) << read.status();
  auto program = BuildProgram(*read);
  EXPECT_TRUE(program.ok()) << program.status();
  const auto file = ReadStrategy("models/mnist_o1.pbtxt");
  EXPECT_TRUE(file.ok()) << file.status();
  const auto options = ResolveOptions(*file, overrides);
  EXPECT_TRUE(options.ok()) << options.status();
  PassPipeline::Settings settings;
  settings.verify_each = true;
  const absl::Status status =
      MakePipeline({*options, kernels}, std::move(settings)).Run(**program);
  EXPECT_TRUE(status.ok()) << status;
  return *std::move(program);
}

// Whether what is called so changes anything.
bool Changes(absl::string_view name, const KernelSet& kernels,
             Program& program) {
  const Options options;
  PassPipeline pipeline({.input = Phase::kLowered});
  Phase reached = Phase::kLowered;
  EXPECT_TRUE(AddNamed(name, {options, kernels}, &reached, &pipeline).ok());
  const absl::Status status = pipeline.Run(program);
  EXPECT_TRUE(status.ok()) << status;
  return pipeline.runs()[0].changed;
}

// "all_reduce totals" counts apart from "all_reduce gradient".
std::map<std::string, int> CountOps(const Program& program,
                                    absl::string_view entry) {
  std::map<std::string, int> counts;
  const Block& block = program.FindEntry(entry)->block();
  for (OpId id : block.ops()) {
    const Op& op = block.op(id);
    std::string name = op.schema->name();
    if (name == "all_reduce") {
      absl::StrAppend(&name, " ", AttrAs<std::string>(op, "of"));
    }
    ++counts[name];
  }
  return counts;
}

TEST(LoweredProgramTest, MnistConvnetO1) {
  const auto program = Lower("mnist_convnet", {});
  std::map<std::string, int> train = CountOps(*program, "train");
  EXPECT_EQ(train["cast"], 1) << "of the metric's integer count";
  EXPECT_EQ(train["unscale"], 0) << "the updates unscale";
  EXPECT_EQ(train["all_reduce gradient"], 2);
  EXPECT_EQ(train["all_reduce totals"], 1);
  EXPECT_EQ(train["all_reduce statistics"], 2) << "of gradients";
  EXPECT_EQ(train["combine_stats"], 2);
  EXPECT_EQ(train["momentum"], 2);
  EXPECT_EQ(train["running_stats"], 2);
  std::map<std::string, int> eval = CountOps(*program, "eval");
  EXPECT_EQ(eval["all_reduce totals"], 1);
  EXPECT_EQ(eval["cast"], 2) << "and of the output";
  EXPECT_EQ(eval["scale_bias"], 2);
}

TEST(LoweredProgramTest, NormsOfOneRankReportThroughTheTotals) {
  const auto program =
      Lower("mnist_convnet", {{"dist.sync_batch_norm", "false", ""}});
  std::map<std::string, int> train = CountOps(*program, "train");
  EXPECT_EQ(train["all_reduce statistics"], 0);
  EXPECT_EQ(train["combine_stats"], 1) << "of both";
  const Block& block = program->FindEntry("train")->block();
  const OpId totals = block.FindOp("totals");
  // Loss, n, metric, its denominator, stop.
  EXPECT_EQ(block.op(totals).inputs.all().size(), 5u);
  const OpId norms = block.FindOp("totals.norms");
  EXPECT_EQ(block.op(norms).inputs.all().size(), 2u * 3);
}

// By pattern.
std::map<std::string, int> CountFusions(const Program& program,
                                        absl::string_view entry) {
  std::map<std::string, int> counts;
  const Block& block = program.FindEntry(entry)->block();
  for (OpId id : block.ops()) {
    const Op& op = block.op(id);
    if (op.body != nullptr) ++counts[AttrAs<std::string>(op, "pattern")];
  }
  return counts;
}

// Nine convolutions with a norm each; three of these are read by relu and the
// next convolution alone, five go into a sum, one into a relu that a sum reads.
TEST(LoweredProgramTest, NormsOfAGpuAreInFusions) {
  const KernelSet kernels = GpuKernels();
  for (const char* strict : {"false", "true"}) {
    SCOPED_TRACE(strict);
    const bool rounds = std::string(strict) == "false";
    const auto program = Lower("small_resnet",
                               {{"dist.sync_batch_norm", "false", ""},
                                {"amp.strict_f32_slots", strict, ""}},
                               kernels);
    std::map<std::string, int> train = CountOps(*program, "train");
    EXPECT_EQ(train["batch_norm"], 0);
    EXPECT_EQ(train["scale_bias"], 0);
    EXPECT_EQ(train["channel_stats"], rounds ? 0 : 9) << "by our own kernel";
    EXPECT_EQ(train["relu"], 0);
    std::map<std::string, int> fusions = CountFusions(*program, "train");
    EXPECT_EQ(fusions["norm_conv_stats"], rounds ? 3 : 0);
    EXPECT_EQ(fusions["norm_conv_grad_filter"], rounds ? 3 : 0);
    EXPECT_EQ(fusions["conv_grad_norm"], rounds ? 3 : 0);
    EXPECT_EQ(fusions["conv_stats"], rounds ? 6 : 0);
    EXPECT_EQ(fusions["norm_elementwise_bits"], rounds ? 4 : 7);
    EXPECT_EQ(fusions["norm_elementwise"], 0);
    EXPECT_EQ(fusions["relu_grad_norm_bits"], rounds ? 4 : 7);
    EXPECT_EQ(fusions["relu_grad_norm"], 0);
    EXPECT_EQ(train["bn_grad_reduce"], 0);
    EXPECT_GT(CountFusions(*program, "eval")["norm_elementwise"], 0);
    EXPECT_EQ(CountFusions(*program, "eval")["norm_elementwise_bits"], 0);
    EXPECT_FALSE(*SplitBatchNorm(kernels, !rounds).Run(*program));
    EXPECT_FALSE(*Fuse(kernels, !rounds).Run(*program));
    EXPECT_FALSE(*KeepReluBits(kernels).Run(*program));
    EXPECT_FALSE(Changes("clean-up", kernels, *program));
  }
}

// The same nine on a target whose convolutions take no norm in front: what relu
// made for the forward part is made again where its gradients are.
TEST(LoweredProgramTest, BackwardMakesNormsAgain) {
  TestTarget target;
  for (const char* pattern :
       {"recompute_conv_grad_filter", "recompute_relu_grad_norm",
        "relu_grad_norm", "norm_elementwise"}) {
    target.patterns.push_back(pattern);
  }
  const KernelSet kernels = AllKernels(target);
  const auto program =
      Lower("small_resnet", {{"dist.sync_batch_norm", "false", ""}}, kernels);
  std::map<std::string, int> fusions = CountFusions(*program, "train");
  EXPECT_EQ(fusions["recompute_conv_grad_filter"], 4);
  EXPECT_EQ(fusions["recompute_relu_grad_norm"], 4);
  EXPECT_EQ(fusions["relu_grad_norm"], 3);
  EXPECT_EQ(fusions["norm_elementwise"], 7);
  EXPECT_EQ(CountOps(*program, "train")["scale_bias"], 0);
  // Nothing in between: a value is in memory for the forward part alone.
  const Block& block = program->FindEntry("train")->block();
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.body == nullptr ||
        AttrAs<std::string>(op, "pattern") != "recompute_relu_grad_norm") {
      continue;
    }
    for (const ValueId input : op.inputs.all()) {
      const OpId maker = block.value(input).op();
      if (!maker.valid() || block.op(maker).body == nullptr) continue;
      EXPECT_NE(AttrAs<std::string>(block.op(maker), "pattern"),
                "norm_elementwise");
    }
  }
  EXPECT_FALSE(*SplitBatchNorm(kernels).Run(*program));
  EXPECT_FALSE(*Fuse(kernels).Run(*program));
  EXPECT_FALSE(Changes("clean-up", kernels, *program));
}

using Config = std::tuple<const char*, const char*, const char*, const char*>;

class EveryModelTest : public testing::TestWithParam<Config> {};

// Lowering leaves nothing to do for a second round.
TEST_P(EveryModelTest, LowersOnce) {
  const auto& [model, level, dtype, sync] = GetParam();
  const auto program = Lower(model, {{"amp.level", level, ""},
                                     {"amp.dtype", dtype, ""},
                                     {"dist.sync_batch_norm", sync, ""}});
  std::map<std::string, int> train = CountOps(*program, "train");
  EXPECT_EQ(train["unscale"], 0);
  EXPECT_EQ(train["all_reduce totals"], 1);
  const KernelSet kernels = Kernels();
  EXPECT_FALSE(*SplitBatchNorm(kernels).Run(*program));
  EXPECT_FALSE(*Fuse(kernels).Run(*program));
  EXPECT_FALSE(Changes("clean-up", kernels, *program));
  EXPECT_FALSE(*GenerateStartup().Run(*program));
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryModelTest,
    testing::Combine(testing::Values("mlp", "mnist_convnet", "small_resnet"),
                     testing::Values("O0", "O1", "O2", "O3"),
                     testing::Values("fp16", "bf16"),
                     testing::Values("true", "false")));

}  // namespace
}  // namespace passes
}  // namespace halftone
