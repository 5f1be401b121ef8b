// The presets paddle, apex and torch step for step, from the strategy to the
// arithmetic of the kernels, over random runs of finite and non-finite steps:
// against the rules of the first two as their sources have them, against
// PyTorch's own operator. Where no Python is named that has it
// (HT_TORCH_PYTHON), that part is skipped.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "kernels/functors/amp.h"
#include "tests/models/training.h"
#include "tests/support/oracle.h"

namespace halftone {
namespace runtime {
namespace {

using functors::LossScalePolicy;
using functors::LossScaleState;
using Verdicts = std::vector<bool>;  // of steps: not finite

// What a preset leaves in the compiled program.
struct Scaler {
  LossScalePolicy policy = {};
  LossScaleState start = {};
};

Scaler Compiled(std::vector<std::string> overrides) {
  Scaler scaler;
  overrides.push_back("amp.level=O1");
  const auto model = CompileText(kScaleModel, kScaleStrategy, overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return scaler;
  const Program& program = *model->program;
  scaler.start.scale = static_cast<float>(
      program.cell(program.FindCell("@loss_scaling")).init.a);
  const Block& block = program.FindEntry("train")->block();
  for (const OpId id : block.ops()) {
    const Op& op = block.op(id);
    if (op.schema->name() != "update_loss_scaling") continue;
    const double ceiling = AttrAs<double>(op, "ceiling");
    scaler.policy = {
        static_cast<int32_t>(AttrAs<int64_t>(op, "incr_every_n_steps")),
        static_cast<int32_t>(AttrAs<int64_t>(op, "decr_every_n_nan_or_inf")),
        AttrAs<double>(op, "incr_ratio"),
        AttrAs<double>(op, "decr_ratio"),
        AttrAs<double>(op, "floor"),
        ceiling > 0 ? ceiling : functors::Infinity(),
        AttrAs<bool>(op, "clamp")};
  }
  EXPECT_GT(scaler.policy.incr_every, 0);
  return scaler;
}

// Runs in which nearly all steps are finite, nearly none are, and between; long
// enough to grow several times.
Verdicts RandomRun(std::mt19937* random, int longest) {
  const double shares[] = {0, 2e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9};
  const double bad = shares[(*random)() % 7];
  Verdicts run(1 + (*random)() % longest);
  const auto limit = static_cast<uint32_t>(bad * 4294967295.0);
  for (size_t i = 0; i < run.size(); ++i) run[i] = (*random)() < limit;
  return run;
}

constexpr int kRuns = 10000, kLongest = 8000;

// Each rule: the scale of the next step, after one more verdict.
template <typename Rule>
void ExpectSameTrajectories(const std::string& preset) {
  const Scaler scaler = Compiled({"amp.scaler=" + preset});
  std::mt19937 random(20);
  int64_t changes = 0;
  for (int i = 0; i < kRuns; ++i) {
    LossScaleState state = scaler.start;
    Rule rule;
    ASSERT_EQ(state.scale, rule.scale);
    for (const bool found_inf : RandomRun(&random, kLongest)) {
      const float before = state.scale;
      state = functors::UpdateLossScale(state, found_inf, scaler.policy);
      rule.Add(found_inf);
      // Below it no product of ours goes on: its inverse would be infinite.
      if (rule.scale < functors::SmallestLossScale()) break;
      ASSERT_EQ(state.scale, rule.scale) << "run " << i;
      changes += state.scale != before;
    }
  }
  EXPECT_GT(changes, kRuns);
}

// phi's update_loss_scaling (funcs::Update) with decorate()'s defaults as users
// of Fleet set them; scale and ratios are f32.
struct PaddleRule {
  float scale = 32768;
  int good = 0, bad = 0;
  void Add(bool found_inf) {
    const float incr_ratio = 2.0f, decr_ratio = 0.8f;
    if (found_inf) {
      good = 0;
      ++bad;
      if (bad == 2) {
        const float lower = scale * decr_ratio;
        scale = lower < 1.0f ? 1.0f : lower;
        bad = 0;
      }
    } else {
      bad = 0;
      ++good;
      if (good == 1000) {
        const float higher = scale * incr_ratio;
        scale = std::isfinite(higher) ? higher : scale;
        good = 0;
      }
    }
  }
};

// apex/amp/scaler.py, LossScaler("dynamic").update_scale: a Python number.
struct ApexRule {
  double scale = 65536;
  int unskipped = 0;
  void Add(bool has_overflow) {
    if (has_overflow) {
      scale = scale / 2;
      unskipped = 0;
    } else {
      ++unskipped;
    }
    if (unskipped == 2000) {
      scale = std::min(16777216.0, scale * 2);
      unskipped = 0;
    }
  }
};

// torch._amp_update_scale_, as of 2.11; the test below asks it itself.
struct TorchRule {
  float scale = 65536;
  int growth = 0;
  void Add(bool found_inf) {
    if (found_inf) {
      scale = static_cast<float>(scale * 0.5);
      growth = 0;
      return;
    }
    if (++growth < 2000) return;
    const auto higher = static_cast<float>(scale * 2.0);
    if (std::isfinite(higher)) scale = higher;
    growth = 0;
  }
};

TEST(ScalePresets, PaddlesRule) {
  ExpectSameTrajectories<PaddleRule>("paddle");
}
TEST(ScalePresets, ApexsRule) { ExpectSameTrajectories<ApexRule>("apex"); }
TEST(ScalePresets, TorchsRule) { ExpectSameTrajectories<TorchRule>("torch"); }

// The scale after each step of random runs, by GradScaler's operator, with its
// defaults and with numbers that are no powers of two.
TEST(ScalePresetsOracle, PyTorchsOwn) {
  const std::string python = OraclePython("HT_TORCH_PYTHON");
  if (!HasModule(python, "torch")) GTEST_SKIP() << python << " has no torch";
  const Scaler scalers[] = {
      Compiled({"amp.scaler=torch"}),
      Compiled({"amp.scaler=torch", "amp.loss_scaling.incr_ratio=1.7",
                "amp.loss_scaling.decr_ratio=0.8",
                "amp.loss_scaling.incr_every_n_steps=3"})};
  std::mt19937 random(21);
  std::vector<Verdicts> runs;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    runs.push_back(RandomRun(&random, 5000));
    for (const bool bad : runs.back()) text += bad ? '1' : '0';
    text += '\n';
  }
  const std::string path = absl::StrCat(FreshDirectory(), ".runs");
  ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  const auto answers =
      AskOracle(python, "tests/models/scale_presets_oracle.py", path);
  ASSERT_EQ(answers.size(), 2 * runs.size());
  for (int k = 0; k < 2; ++k) {
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto found = answers.find(absl::StrCat(k, ".", i));
      ASSERT_NE(found, answers.end());
      const std::vector<double>& expected = found->second;
      ASSERT_EQ(expected.size(), runs[i].size());
      LossScaleState state = scalers[k].start;
      for (size_t step = 0; step < runs[i].size(); ++step) {
        state =
            functors::UpdateLossScale(state, runs[i][step], scalers[k].policy);
        if (expected[step] < functors::SmallestLossScale()) break;
        ASSERT_EQ(state.scale, expected[step])
            << "run " << i << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
