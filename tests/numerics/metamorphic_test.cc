// Runs that must agree, bit for bit where docs/design.md promises it.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "tests/support/compile_model.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace {

using passes::Override;

constexpr char kConvnet[] = "models/mnist_convnet.pbtxt";
constexpr char kFp32[] = "models/mnist_fp32.pbtxt";
constexpr char kO1[] = "models/mnist_o1.pbtxt";
constexpr char kBf16[] = "models/mnist_o1_bf16.pbtxt";

std::vector<Override> Sets(
    const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : pairs) {
    overrides.push_back({path, value, "--set"});
  }
  return overrides;
}

StepsResult MustRun(const CompiledModel& model, const StepsSpec& spec) {
  auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

StepsResult MustRun(const std::string& strategy,
                    const std::vector<Override>& overrides,
                    const StepsSpec& spec) {
  const auto model = CompileModel(kConvnet, strategy, overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? MustRun(*model, spec) : StepsResult();
}

// All parameters, statistics and optimizer slots; not the scaler's cells.
void ExpectSameState(const StepsResult& a, const StepsResult& b) {
  ASSERT_FALSE(a.cells.empty());
  int compared = 0;
  for (const auto& [name, bytes] : a.cells[0]) {
    if (name[0] == '@') continue;
    ASSERT_EQ(b.cells[0].count(name), 1u) << name;
    EXPECT_TRUE(bytes == b.cells[0].at(name)) << name;
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST(Metamorphic, EverythingBlackListedIsFp32BitForBit) {
  const StepsSpec spec;
  const StepsResult plain = MustRun(kFp32, {}, spec);
  const StepsResult black =
      MustRun(kO1, Sets({{"amp.custom_black_opnames", "*"}}), spec);
  EXPECT_EQ(plain.losses, black.losses);
  ExpectSameState(plain, black);
}

TEST(Metamorphic, APowerOfTwoAsLossScaleChangesNoBit) {
  for (const char* strategy : {kFp32, kBf16}) {
    StepsSpec spec;
    const auto scaled = [&](const char* scale) {
      return MustRun(
          strategy,
          Sets({{"amp.loss_scaling.use_dynamic_loss_scaling", "false"},
                {"amp.loss_scaling.init_loss_scaling", scale}}),
          spec);
    };
    const StepsResult one = scaled("1"), many = scaled("4096");
    EXPECT_EQ(one.losses, many.losses) << strategy;
    ExpectSameState(one, many);
  }
}

TEST(Metamorphic, RunsAreTheSameBitForBit) {
  StepsSpec spec;
  spec.ranks = 2;
  const StepsResult first = MustRun(kO1, {}, spec);
  const StepsResult second = MustRun(kO1, {}, spec);
  EXPECT_EQ(first.losses, second.losses);
  ExpectSameState(first, second);
}

TEST(Metamorphic, ReplicatedCellsAreEqualOnAllRanks) {
  StepsSpec spec;
  spec.ranks = 3;  // 64 = 22 + 21 + 21
  const StepsResult result = MustRun(kO1, {}, spec);
  ASSERT_EQ(result.cells.size(), 3u);
  for (int r = 1; r < 3; ++r) EXPECT_EQ(result.cells[r], result.cells[0]);
}

TEST(Metamorphic, FusedIsUnfused) {
  for (const char* strategy : {kFp32, kO1}) {
    const auto model = CompileModel(kConvnet, strategy);
    ASSERT_TRUE(model.ok()) << model.status();
    StepsSpec spec;
    const StepsResult fused = MustRun(*model, spec);
    spec.kernels = {&KernelsWithoutPatterns()};
    const StepsResult bodies = MustRun(*model, spec);
    for (size_t s = 0; s < fused.losses.size(); ++s) {
      EXPECT_NEAR(fused.losses[s], bodies.losses[s], 2e-3 * fused.losses[0])
          << strategy << " step " << s;
    }
  }
}

}  // namespace
}  // namespace halftone
