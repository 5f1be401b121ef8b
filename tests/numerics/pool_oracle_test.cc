// pool2d against PyTorch (ceil_windows "inside") and Paddle ("all") on 96 kinds
// of windows, as maximum and as both means. The Python interpreters that have
// them are named by HT_TORCH_PYTHON and HT_PADDLE_PYTHON, else python3 is
// asked; where it has no such package the test is skipped.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"
#include "tests/support/oracle.h"

namespace halftone {
namespace {

using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

Values Image(int64_t n) {
  Values image;
  for (int64_t i = 0; i < n * n; ++i) {
    image.push_back(((i * 7 + 3) % (n * n) - n * n / 2) / 4.0);
  }
  return image;
}

// Our result of the combination of that name, as pool_oracle.py writes it.
Values Pooled(const std::string& name, const std::string& ceil_windows) {
  const std::vector<std::string> words = absl::StrSplit(name, '.');
  Ints c;
  for (int i = 0; i < 5; ++i) c.push_back(std::stoll(words[i]));
  kernels::KernelRun run("pool2d");
  run.In("X", kernels::F32({1, 1, c[0], c[0]}, Image(c[0])))
      .Attr("ksize", Ints{c[1], c[1]})
      .Attr("strides", Ints{c[2], c[2]})
      .Attr("paddings", Ints{c[3], c[3]})
      .Attr("ceil_mode", c[4] == 1)
      .Attr("ceil_windows", ceil_windows)
      .Attr("pooling_type", words[5] == "max" ? "max" : "avg")
      .Attr("exclusive", words[5] != "inclusive");
  return run.Get("Out");
}

void Compare(const std::string& python, const std::string& whom,
             const std::string& ceil_windows) {
  if (!HasModule(python, whom)) GTEST_SKIP() << python << " has no " << whom;
  const auto answers = AskOracle(python, "tests/numerics/pool_oracle.py", whom);
  EXPECT_EQ(answers.size(), 96u * 3);
  for (const auto& [name, expected] : answers) {
    const Values found = Pooled(name, ceil_windows);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (size_t i = 0; i < found.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(found[i])) << name << " " << i;
        continue;
      }
      // Sums of up to nine quarters are exact; their quotient is rounded, by
      // Paddle as a product with the inverse.
      EXPECT_NEAR(found[i], expected[i], 3e-7 * std::abs(expected[i]))
          << name << " " << i;
    }
  }
}

TEST(PoolOracle, InsideIsPyTorchs) {
  Compare(OraclePython("HT_TORCH_PYTHON"), "torch", "inside");
}

TEST(PoolOracle, AllIsPaddles) {
  Compare(OraclePython("HT_PADDLE_PYTHON"), "paddle", "all");
}

}  // namespace
}  // namespace halftone
