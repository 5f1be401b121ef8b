// A run's event file as TensorBoard's own reader sees it. HT_TORCH_PYTHON names
// an interpreter that has the package, else python3 is asked.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/oracle.h"

namespace halftone {
namespace {

TEST(TensorBoardOracle, ReadsWhatARunWrites) {
  const std::string python = OraclePython("HT_TORCH_PYTHON");
  if (!HasModule(python, "tensorboard")) {
    GTEST_SKIP() << python << " has no tensorboard";
  }
  const Result result =
      RunProgram({python, "tests/cli/tensorboard_oracle.py", "tools/halftone"});
  EXPECT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_THAT(result.out, ::testing::HasSubstr("same 3 steps"));
}

}  // namespace
}  // namespace halftone
