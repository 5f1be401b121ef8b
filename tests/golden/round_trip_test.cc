// Each pass by itself, over the text of the program that was there before it,
// makes what it made within the pipeline, byte for byte: what one pass knows of
// another is in the program, or in the strategy.
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/io/model_printer.h"
#include "graph/text/text.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/named_passes.h"
#include "passes/testing/kernels.h"
#include "tests/support/dumps.h"

namespace halftone {
namespace {

using passes::Override;

// A GPU's: every pattern, images in channels_last.
passes::KernelSet Gpu() {
  passes::TestTarget target;
  target.name = "sm_90";
  for (const FusionPattern& pattern : FusionPatterns()) {
    target.patterns.push_back(std::string(pattern.name()));
  }
  return passes::AllKernels(target);
}

passes::KernelSet Cpu() {
  passes::TestTarget target;
  target.patterns = {"conv_bias_relu", "matmul_bias_relu", "elementwise_chain"};
  return passes::AllKernels(target);
}

struct Setting {
  const char* name;
  std::vector<Override> overrides;
  bool outputs_alone = false;  // as predict compiles
};

std::vector<Setting> Settings() {
  const auto set = [](const char* path, const char* value) {
    return Override{path, value, "--set"};
  };
  const Override momentum = set("optimizer.momentum.momentum", "0.9");
  return {
      {"forward_O1", {set("amp.level", "O1")}},
      {"O0", {set("amp.level", "O0"), momentum}},
      {"O1",
       {set("amp.level", "O1"), momentum, set("dist.sync_batch_norm", "true"),
        set("optimizer.clip.global_norm", "1")}},
      {"O1_any_low",
       {set("amp.level", "O1"), momentum, set("amp.precision_rule", "any_low"),
        set("dist.fuse_grad_size_in_MB", "0.01"),
        set("dist.first_bucket_size_in_MB", "0.001")}},
      {"O2_bf16",
       {set("amp.level", "O2"), set("amp.dtype", "bf16"),
        set("optimizer.adamw.weight_decay", "0.1"),
        set("dist.gradient_scale", "post")}},
      {"O3",
       {set("amp.level", "O3"), momentum, set("optimizer.freeze", "*1.b*"),
        set("dist.fuse_all_reduce_ops", "false")}},
      {"O3_averages",
       {set("amp.level", "O3"), set("optimizer.lamb.beta2", "0.99"),
        set("optimizer.clip.norm", "1"), set("optimizer.ema.decay", "0.9")}},
      {"O1_averages",
       {set("amp.level", "O1"), set("optimizer.rmsprop.centered", "true"),
        set("optimizer.clip.value", "1"), set("optimizer.ema.warmup", "true"),
        set("optimizer.freeze", "*1.b*")}},
      {"O2_groups",
       {set("amp.level", "O2"), momentum, set("dist.sync_batch_norm", "true"),
        set("dist.sync_batch_norm_group_size", "2")}},
      {"O2_recompute",
       {set("amp.level", "O2"), momentum,
        set("memory.recompute.within", "100KiB")}},
      {"O1_merged",
       {set("amp.level", "O1"), momentum,
        set("dist.gradient_merge.k_steps", "2")}},
      {"O1_shards",
       {set("amp.level", "O1"), momentum, set("dist.virtual_shards", "4"),
        set("dist.sharding.stage", "1")}},
      {"O1_low_sums",
       {set("amp.level", "O1"), momentum, set("dist.fp16_allreduce", "true"),
        set("dist.delay_allreduce", "true"), set("dist.message_size", "5000"),
        set("dist.gradient_predivide_factor", "3")}},
      {"O3_wide_sums",
       {set("amp.level", "O3"), momentum,
        set("dist.allreduce_always_fp32", "true"),
        set("dist.reduce", "exact_order"), set("dist.gradient_mean", "ranks"),
        set("dist.batch_norm_statistics", "rank0")}},
      {"O2_sharded",
       {set("amp.level", "O2"), momentum, set("dist.sharding.stage", "1"),
        set("optimizer.ema.decay", "0.9")}},
      {"O2_local",
       {set("amp.level", "O2"), momentum,
        set("dist.adaptive_localsgd.init_k_steps", "4"),
        set("optimizer.ema.decay", "0.9")}},
      {"O1_dgc",
       {set("amp.level", "O1"), momentum, set("optimizer.ema.decay", "0.9"),
        set("dist.dgc.rampup_begin_step", "2"),
        set("dist.dgc.rampup_step", "4"), set("dist.dgc.sparsity", "0.9"),
        set("dist.dgc.sparsity", "0.99")}},
      {"O0_compress",
       {momentum, set("memory.compress.bits", "4"),
        set("memory.recompute.within", "100KiB")}},
      {"outputs_O1", {set("amp.level", "O1")}, /*outputs_alone=*/true},
  };
}

absl::StatusOr<ModelFile> Model(const std::string& name) {
  const std::string path = absl::StrCat("models/", name, ".pbtxt");
  if (std::filesystem::exists(path)) return ReadModel(path);
  HT_ASSIGN_OR_RETURN(const proto::Model model, ZooModel(name));
  return ParseModel(PrintModel(model), name);
}

void CheckDumps(const std::string& directory,
                const passes::PassInputs& inputs) {
  const std::vector<std::string> files = DumpsIn(directory);
  ASSERT_GT(files.size(), 10u);
  for (size_t i = 1; i < files.size(); ++i) {
    const std::string pass = PassOf(files[i]);
    const auto before = ReadFile(files[i - 1]);
    const auto after = ReadFile(files[i]);
    ASSERT_TRUE(before.ok() && after.ok());
    auto program = Parse(*before, files[i - 1]);
    ASSERT_TRUE(program.ok()) << program.status();
    const auto runs = passes::RunNamed({pass}, inputs, {}, **program);
    ASSERT_TRUE(runs.ok()) << files[i] << ": " << runs.status();
    EXPECT_EQ(Print(**program), *after) << files[i];
    EXPECT_EQ((*runs)[0].changed, *before != *after) << files[i];
  }
}

using Config = std::tuple<const char*, size_t, bool>;

class RoundTripTest : public testing::TestWithParam<Config> {};

TEST_P(RoundTripTest, EachPassByItself) {
  const auto& [name, setting, gpu] = GetParam();
  const auto model = Model(name);
  ASSERT_TRUE(model.ok()) << model.status();
  auto program = BuildProgram(*model);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto resolved = passes::ResolveOptions(passes::StrategyFile(),
                                               Settings()[setting].overrides);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto options = passes::OptionsFor(**program, *resolved);
  ASSERT_TRUE(options.ok()) << options.status();
  const passes::KernelSet kernels = gpu ? Gpu() : Cpu();
  passes::PassInputs inputs{*options, kernels, {(*program)->loss.var}};
  if (Settings()[setting].outputs_alone) inputs.outputs = (*program)->outputs;
  passes::PassPipeline::Settings settings;
  settings.dump_dir = absl::StrCat(testing::TempDir(), "/", name, "_",
                                   Settings()[setting].name, gpu ? "_gpu" : "");
  const absl::Status run =
      passes::MakePipeline(inputs, settings).Run(**program);
  ASSERT_TRUE(run.ok()) << run;
  CheckDumps(settings.dump_dir, inputs);
}

std::string TestName(const testing::TestParamInfo<Config>& info) {
  return absl::StrCat(std::get<0>(info.param), "_",
                      Settings()[std::get<1>(info.param)].name,
                      std::get<2>(info.param) ? "_gpu" : "_cpu");
}

INSTANTIATE_TEST_SUITE_P(
    Models, RoundTripTest,
    testing::Combine(testing::Values("mlp", "mnist_convnet", "small_resnet"),
                     testing::Range(size_t{0}, Settings().size()),
                     testing::Bool()),
    TestName);
INSTANTIATE_TEST_SUITE_P(Zoo, RoundTripTest,
                         testing::Combine(testing::Values("resnet50"),
                                          testing::Values(size_t{2}),
                                          testing::Values(true)),
                         TestName);

TEST(RoundTripSettings, RunEveryPass) {
  const passes::KernelSet kernels = Cpu();
  std::set<std::string> run;
  for (const Setting& setting : Settings()) {
    const auto options =
        passes::ResolveOptions(passes::StrategyFile(), setting.overrides);
    ASSERT_TRUE(options.ok()) << options.status();
    passes::PassInputs inputs{*options, kernels, {"loss"}};
    if (setting.outputs_alone) inputs.outputs = {"logits"};
    for (const passes::PassStep& step : passes::AllSteps()) {
      if (step.wanted(inputs)) run.insert(step.name);
    }
  }
  EXPECT_EQ(run.size(), passes::AllSteps().size());
}

}  // namespace
}  // namespace halftone
