// Averages of parameters: their formula on a real training, rejected steps,
// and what evaluation reads.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/compile_model.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace {

using Cells = std::map<std::string, std::string>;
using Overrides = std::vector<passes::Override>;

constexpr char kEma[] = ".ema";

Overrides With(Overrides more) {
  more.push_back({"optimizer.ema.decay", "0.75", "--set"});
  return more;
}

absl::StatusOr<CompiledModel> Compiled(const Overrides& overrides) {
  return CompileModel("models/mnist_convnet.pbtxt", "models/mnist_o1.pbtxt",
                      overrides);
}

StepsResult After(const CompiledModel& model, int64_t steps, int ranks = 1) {
  StepsSpec spec;
  spec.steps = steps;
  spec.ranks = ranks;
  const auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

std::vector<float> Floats(const Cells& cells, const std::string& name) {
  const std::string& bytes = cells.at(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Whose average is there, in the state's order.
std::vector<std::string> Averaged(const Cells& cells) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : cells) {
    if (absl::EndsWith(name, kEma)) {
      names.push_back(name.substr(0, name.size() - sizeof(kEma) + 1));
    }
  }
  return names;
}

// e = decay * e + (1 - decay) * p of each, in f32.
void ExpectStep(const Cells& before, const Cells& after, float decay) {
  for (const std::string& name : Averaged(after)) {
    const auto old = Floats(before, name + kEma);
    const auto average = Floats(after, name + kEma), p = Floats(after, name);
    ASSERT_EQ(average.size(), p.size()) << name;
    for (size_t i = 0; i < p.size(); ++i) {
      ASSERT_EQ(average[i], decay * old[i] + (1 - decay) * p[i]) << name;
    }
  }
}

TEST(AverageTest, FollowsEveryAppliedStep) {
  for (const char* level : {"O0", "O1", "O2"}) {
    const auto model = Compiled(With({{"amp.level", level, "--level"}}));
    ASSERT_TRUE(model.ok()) << model.status();
    Cells before = After(*model, 0).cells[0];
    EXPECT_EQ(Averaged(before).size(), 10u);
    // It begins as the parameter.
    for (const std::string& name : Averaged(before)) {
      EXPECT_EQ(before.at(name + kEma), before.at(name)) << name;
    }
    for (int64_t steps = 1; steps <= 3; ++steps) {
      const StepsResult result = After(*model, steps);
      EXPECT_FALSE(result.rejected.back());
      ExpectStep(before, result.cells[0], 0.75f);
      before = result.cells[0];
    }
  }
}

TEST(AverageTest, WarmsUp) {
  const auto model =
      Compiled(With({{"optimizer.ema.warmup", "true", "--set"}}));
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectStep(After(*model, 0).cells[0], After(*model, 1).cells[0],
             static_cast<float>(2.0 / 11));
}

// A loss scale that overflows f16 rejects the first steps.
TEST(AverageTest, ARejectedStepChangesNone) {
  const auto model = Compiled(
      With({{"amp.loss_scaling.init_loss_scaling", "16777216", "--set"}}));
  ASSERT_TRUE(model.ok()) << model.status();
  const Cells start = After(*model, 0).cells[0];
  const StepsResult result = After(*model, 2);
  ASSERT_TRUE(result.rejected[0] && result.rejected[1]);
  for (const std::string& name : Averaged(start)) {
    EXPECT_EQ(result.cells[0].at(name + kEma), start.at(name + kEma)) << name;
  }
}

TEST(AverageTest, RanksAgree) {
  const auto model = Compiled(With({}));
  ASSERT_TRUE(model.ok()) << model.status();
  const StepsResult result = After(*model, 3, 2);
  EXPECT_EQ(result.cells[0], result.cells[1]);
}

// Parameters train as they do without.
TEST(AverageTest, LeavesTheTrainingAlone) {
  const auto with = Compiled(With({})), without = Compiled({});
  ASSERT_TRUE(with.ok() && without.ok());
  const Cells averaged = After(*with, 3).cells[0];
  const Cells plain = After(*without, 3).cells[0];
  for (const auto& [name, bytes] : plain) {
    EXPECT_EQ(averaged.at(name), bytes) << name;
  }
}

}  // namespace
}  // namespace halftone
