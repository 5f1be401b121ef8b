// Models compiled and planned for a GPU on a machine that may have none.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/feed_forward.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result Halftone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

std::string Compiled(const std::string& model, const std::string& target,
                     const std::string& level, const std::string& dtype) {
  const std::string out =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-", model, "-", target,
                   "-", level, "-", dtype, ".htc");
  const Result result = Halftone(
      {"compile", absl::StrCat("models/", model, ".pbtxt"), "--strategy",
       "models/mnist_o1.pbtxt", "--target", target, "--level", level, "--set",
       absl::StrCat("amp.dtype=", dtype), "-o", out});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return out;
}

class GpuTarget : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuTarget, ModelsCompileAndArePlanned) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    for (const char* dtype : {"fp16", "bf16"}) {
      SCOPED_TRACE(absl::StrCat(GetParam(), " ", level, " ", dtype));
      const std::string model = Compiled(GetParam(), "sm_90", level, dtype);
      const Result plan = Halftone({"plan", model, "--steps"});
      ASSERT_EQ(plan.exit_code(), 0) << plan.err;
      EXPECT_THAT(plan.out, HasSubstr("cudnn"));
      // Our own convolutions are for what cuDNN cannot do.
      EXPECT_THAT(plan.out, Not(HasSubstr("direct")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTarget,
                         ::testing::Values("mnist_convnet", "small_resnet"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

// What cuBLASLt does in the epilogues of products.
TEST(GpuProducts, AreFusedWithWhatFollowsThem) {
  const std::string source = absl::StrCat(::testing::TempDir(), "/ffn.pbtxt");
  ASSERT_TRUE(WriteFileAtomically(source, kFeedForward).ok());
  const std::string model = absl::StrCat(source, ".htc");
  const auto steps = [&](const std::string& of) {
    const Result compiled =
        Halftone({"compile", of, "--strategy", "models/mnist_o2.pbtxt",
                  "--target", "sm_90", "-o", model});
    EXPECT_EQ(compiled.exit_code(), 0) << compiled.err;
    return Halftone({"plan", model, "--steps"}).out;
  };
  const std::string block = steps(source);
  for (const char* fused : {"act", "logits.grad.2", "down.grad.4", "up.grad"}) {
    EXPECT_THAT(block, HasSubstr(absl::StrCat(fused, ".fused [cublaslt]")));
  }
  EXPECT_THAT(block, Not(HasSubstr("gelu")));
  const std::string mlp = steps("models/mlp.pbtxt");
  for (const char* fused : {"fc2.grad.2", "fc1.grad"}) {
    EXPECT_THAT(mlp, HasSubstr(absl::StrCat(fused, ".fused [cublaslt]")));
  }
}

TEST(GpuProducts, AreInlinedForAReason) {
  const std::string source = absl::StrCat(::testing::TempDir(), "/odd.pbtxt");
  ASSERT_TRUE(WriteFileAtomically(
                  source, absl::StrReplaceAll(kFeedForward, {{"256", "252"}}))
                  .ok());
  const std::string model = absl::StrCat(source, ".htc");
  const Result compiled =
      Halftone({"compile", source, "--strategy", "models/mnist_o2.pbtxt",
                "--target", "sm_90", "-o", model});
  ASSERT_EQ(compiled.exit_code(), 0) << compiled.err;
  constexpr char kWhy[] =
      "cuBLASLt wants what gelu read in rows of a multiple of 8 elements, "
      "found 252)";
  EXPECT_THAT(Halftone({"plan", model}).out,
              HasSubstr(absl::StrCat(
                  "inlined      2 of 4 fusions op by op, because no "
                  "sm_90 kernel takes their shapes: act.fused "
                  "(matmul_gelu: ",
                  kWhy, ", up.grad.fused (matmul_gelu_grad: ", kWhy, "\n")));
}

// Images of 3 channels: tensor cores, and so cuDNN's gradients of filters, want
// 8. The compiler says what it made of them.
TEST(GpuImages, ArePaddedForTensorCores) {
  const std::string source = absl::StrCat(::testing::TempDir(), "/vgg.pbtxt");
  ASSERT_EQ(Halftone({"zoo", "vgg16", "-o", source}).exit_code(), 0);
  const auto compile = [&source](const std::string& target) {
    return Halftone({"compile", source, "--strategy", "models/mnist_o2.pbtxt",
                     "--level", "O1", "--target", target, "-o",
                     absl::StrCat(source, ".htc")});
  };
  EXPECT_THAT(compile("cpu").out,
              HasSubstr("conv1_1 (3 channels): not multiples of 8"));
  EXPECT_THAT(compile("sm_90").out,
              HasSubstr("note D9       conv1_1 (3 channels to 8, 784 KiB a "
                        "sample): padded with zeros for tensor cores"));
  const Result plan =
      Halftone({"plan", absl::StrCat(source, ".htc"), "--steps"});
  EXPECT_THAT(plan.out, HasSubstr("x.cast_fp16.padded [pixels]"));
}

// By a data sheet: nothing has to be measured.
TEST(GpuTargets, ArePredicted) {
  const Result shown = Halftone(
      {"plan", Compiled("mnist_convnet", "sm_90", "O1", "fp16"), "--roofline"});
  EXPECT_EQ(shown.exit_code(), 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("H100, data sheet: 3350 GB/s"));
  EXPECT_THAT(shown.out, HasSubstr(" launch "));
}

// A plan does not depend on the machine: memory is that of the target's
// engines.
TEST(GpuPlan, IsThatOfTheTarget) {
  const auto plan = [](const std::string& model) {
    const Result result = Halftone({"plan", model, "--json"});
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const std::string h100 = Compiled("mnist_convnet", "sm_90", "O2", "fp16");
  EXPECT_EQ(plan(h100), plan(h100));
  EXPECT_FALSE(plan(Compiled("mnist_convnet", "sm_80", "O2", "fp16")).empty());
}

// Norms are split for fusions, one of which has no kernel: its image has one
// channel.
TEST(GpuPlan, SaysWhichFusionsAreInlined) {
  const std::string model =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-norms.htc");
  const Result compiled =
      Halftone({"compile", "models/small_resnet.pbtxt", "--strategy",
                "models/mnist_o1.pbtxt", "--target", "sm_90", "--set",
                "dist.sync_batch_norm=false", "-o", model});
  ASSERT_EQ(compiled.exit_code(), 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("0 run on their own"));
  EXPECT_THAT(compiled.out, HasSubstr("note F1       9 norms split"));
  const Result plan = Halftone({"plan", model});
  EXPECT_THAT(plan.out, HasSubstr("inlined      1 of 24 fusions op by op, "
                                  "because no sm_90 kernel takes their shapes: "
                                  "bn1.stats.fused (conv_stats)\n"));
  const Result strict = Halftone(
      {"compile", model, "--strict-f32-slots", "-o", model + ".strict"});
  ASSERT_EQ(strict.exit_code(), 0) << strict.err;
  EXPECT_THAT(strict.out, HasSubstr("note F1"));
  EXPECT_THAT(strict.out, Not(HasSubstr("note F2")));
}

}  // namespace
}  // namespace halftone
