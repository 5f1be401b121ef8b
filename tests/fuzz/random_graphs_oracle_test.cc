// Random models under many settings, against PyTorch: a fixed set of seeds.
// HT_TORCH_PYTHON names an interpreter that has the packages, else python3 is
// asked; where it lacks them the test is skipped. README.md has how to run
// more.
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/oracle.h"

namespace halftone {
namespace {

TEST(RandomGraphsOracle, TrainsAsPyTorchAndAsItself) {
  const std::string python = OraclePython("HT_TORCH_PYTHON");
  if (!HasModule(python, "numpy, safetensors, torch")) {
    GTEST_SKIP() << python << " has no torch, safetensors or numpy";
  }
  std::vector<std::string> command = {
      python, "tests/fuzz/random_graphs_oracle.py", "tools/halftone",
      // All seeds take one minute on two idle cores.
      "--minutes", "4"};
  // Where Bazel keeps what a test leaves.
  const char* kept = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (kept != nullptr) command.insert(command.end(), {"--folder", kept});
  const Result result = RunProgram(command);
  EXPECT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_THAT(result.out, ::testing::HasSubstr(" 0 failed"));
}

}  // namespace
}  // namespace halftone
