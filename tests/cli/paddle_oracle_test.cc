// halftone import beside Paddle 2.6.2 on nets of many kinds: its own rewriting
// to f16, and its training; ops that are several of ours. HT_PADDLE_PYTHON
// names an interpreter that has Paddle, else python3 is asked; without it the
// tests are skipped.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void RunScript(const std::string& script, const char* last = "unet3d") {
  const char* path = std::getenv("HT_PADDLE_PYTHON");
  const Result result = RunProgram({path == nullptr ? "/usr/bin/python3" : path,
                                    "tests/cli/" + script, "tools/halftone"});
  if (absl::StartsWith(result.out, "skip")) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr(last));
  EXPECT_THAT(result.out, Not(HasSubstr("FAILED")));
}

TEST(PaddleOracle, PrecisionsAndCastsAreTheRewritings) {
  RunScript("paddle_rewrite_oracle.py");
}

TEST(PaddleOracle, NetsTrainAsInPaddle) {
  RunScript("paddle_training_oracle.py");
}

TEST(PaddleOracle, OpsThatAreSeveralOfOurs) {
  RunScript("paddle_ops_oracle.py", "as in Paddle");
}

}  // namespace
}  // namespace halftone
