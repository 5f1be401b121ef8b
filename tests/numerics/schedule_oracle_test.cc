// Learning rates, from the strategy's text to the kernel, against PyTorch's own
// schedulers. HT_TORCH_PYTHON names the Python that has it, else python3 is
// asked; where it has none the test is skipped.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"
#include "passes/options/options.h"
#include "passes/update/rate_policy.h"
#include "tests/support/oracle.h"

namespace halftone {
namespace {

using Values = std::vector<double>;

constexpr double kBase = 0.3, kSteps = 400, kEpoch = 20;

struct Case {
  std::string lr;
  double warm = 0;
};
const std::map<std::string, Case>& Cases() {
  static const auto& cases = *new std::map<std::string, Case>{
      {"step.epochs", {"step { step_size: 3 gamma: 0.4 }"}},
      {"step.steps", {"step { step_size: 30 every: 'steps' }"}},
      {"step.warm", {"step { step_size: 30 every: 'steps' }", 25}},
      {"multi_step.epochs", {"multi_step { milestones: [4, 9, 15] }"}},
      {"multi_step.steps",
       {"multi_step { milestones: [1, 50, 333] gamma: 0.3 every: 'steps' }"}},
      {"polynomial", {"polynomial { power: 1.7 }"}},
      {"polynomial.epochs",
       {"polynomial { power: 2 decay_steps: 8 every: 'epochs' }"}},
      {"exponential.epochs", {"exponential { gamma: 0.8 }"}},
      {"exponential.steps", {"exponential { gamma: 0.99 every: 'steps' }"}},
      {"exponential.warm", {"exponential { gamma: 0.99 every: 'steps' }", 40}},
      {"one_cycle", {"one_cycle { max_lr: 0.7 }"}},
      {"one_cycle.linear",
       {"one_cycle { max_lr: 0.7 pct_start: 0.25 anneal_strategy: 'linear' "
        "div_factor: 10 final_div_factor: 100 }"}},
      {"one_cycle.three_phase",
       {"one_cycle { max_lr: 0.7 three_phase: true }"}},
      {"cyclic", {"cyclic { base_lr: 0.01 max_lr: 0.1 step_size_up: 30 }"}},
      {"cyclic.triangular2",
       {"cyclic { base_lr: 0.01 max_lr: 0.1 step_size_up: 30 step_size_down: "
        "17 mode: 'triangular2' }"}},
      {"cyclic.exp_range",
       {"cyclic { base_lr: 0.01 max_lr: 0.1 step_size_up: 30 mode: "
        "'exp_range' gamma: 0.995 }"}},
      {"cyclic.epochs",
       {"cyclic { base_lr: 0.01 max_lr: 0.1 step_size_up: 3 step_size_down: 4 "
        "every: 'epochs' }"}},
      {"cosine_restarts.steps",
       {"cosine_restarts { T_0: 30 T_mult: 2 min_ratio: 0.1 every: 'steps' }"}},
      {"cosine_restarts.epochs",
       {"cosine_restarts { T_0: 4 every: 'epochs' }"}},
      {"cosine_restarts.warm",
       {"cosine_restarts { T_0: 30 T_mult: 2 every: 'steps' }", 40}},
      {"cosine_restarts.parts", {"cosine_restarts { T_0: 3 T_mult: 2 }"}},
  };
  return cases;
}

Values Rates(const Case& one) {
  Values rates;
  auto file = passes::ParseStrategy("lr { " + one.lr + " }", "s.pbtxt");
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return rates;
  const auto options = passes::ResolveOptions(*file, {});
  EXPECT_TRUE(options.ok()) << options.status();
  if (!options.ok()) return rates;
  const passes::RateAttrs attrs = passes::RatePolicyOf(options->strategy.lr());
  for (double step = 0; step < kSteps; ++step) {
    kernels::KernelRun run("learning_rate");
    run.In("Applied", kernels::I64({}, {step}));
    run.In("Schedule", kernels::F32({3}, {kBase, kSteps, one.warm}));
    run.In("StepsPerEpoch", kernels::F32({}, {kEpoch}));
    for (const auto& [name, value] : attrs) run.Attr(name, value);
    rates.push_back(run.Value("Out"));
  }
  return rates;
}

TEST(ScheduleOracle, PyTorchsRates) {
  const std::string python = OraclePython("HT_TORCH_PYTHON");
  if (!HasModule(python, "torch")) GTEST_SKIP() << python << " has no torch";
  const auto answers =
      AskOracle(python, "tests/numerics/schedule_oracle.py", "");
  EXPECT_EQ(answers.size(), Cases().size());
  for (const auto& [name, expected] : answers) {
    ASSERT_EQ(Cases().count(name), 1u) << name;
    const Values found = Rates(Cases().at(name));
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (size_t i = 0; i < found.size(); ++i) {
      // Ours is an f32, and its base too; PyTorch multiplies from step to step.
      ASSERT_NEAR(found[i], expected[i], 2.5e-7 * expected[i] + 1e-12)
          << name << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace halftone
