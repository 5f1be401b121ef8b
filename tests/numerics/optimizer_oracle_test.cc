// 50 steps of each method that torch.optim has against torch.optim itself. The
// Python interpreter that has it is named by HT_TORCH_PYTHON, else python3 is
// asked; where it has no such package the test is skipped.
#include <string>

#include "gtest/gtest.h"
#include "tests/numerics/optimizer_steps.h"
#include "tests/support/oracle.h"

namespace halftone {
namespace {

constexpr int kElements = 257;

// As the script has them; what is stored is 64 times the gradient.
Values Gradient(int step) {
  Values g;
  for (int i = 0; i < kElements; ++i) {
    g.push_back((i * 37 + step * 101 + i * step) % 257 - 128);
  }
  return g;
}

TEST(OptimizerOracle, FiftyStepsOfTorchOptim) {
  const std::string python = OraclePython("HT_TORCH_PYTHON");
  if (!HasModule(python, "torch")) GTEST_SKIP() << python << " has no torch";
  const auto answers =
      AskOracle(python, "tests/numerics/optimizer_oracle.py", "");
  EXPECT_EQ(answers.size(), 13u);
  for (const OptimizerCase& method : OptimizerCases()) {
    const auto answer = answers.find(method.name);
    if (answer == answers.end()) continue;
    Values start;
    for (int i = 0; i < kElements; ++i) {
      start.push_back(((i * 53 + 7) % 129 - 64) / 32.0);
    }
    OptimizerSteps steps(method, {start}, DType::kF16, 1);
    for (int step = 0; step < 50; ++step) steps.Step({Gradient(step)});
    ASSERT_EQ(answer->second.size(), start.size());
    for (int i = 0; i < kElements; ++i) {
      // Both round in f32, each in its own order: 50 steps of three roundings
      // of a parameter of at most 4, twice, are 4e-5; a variance of gradients
      // that hardly change is a small difference of rounded means.
      EXPECT_NEAR(steps.parameters()[0][i], answer->second[i], 1e-4)
          << method.name << " element " << i;
    }
  }
}

}  // namespace
}  // namespace halftone
