// What a plan says a rank needs is what a run needs: within 1 % on CPUs.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;

struct Case {
  std::string model, strategy;
};

TEST(PlannedPeak, IsTheMeasuredOne) {
  std::vector<Case> cases;
  for (const char* model : {"mlp", "mnist_convnet", "small_resnet"}) {
    for (const char* strategy : {"mnist_fp32", "mnist_o1_bf16", "mnist_o2"}) {
      cases.push_back({model, strategy});
    }
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.model, " by ", c.strategy));
    const std::string out = NewPath(c.model);
    const Result run = RunProgram(
        {"tools/halftone", "run", absl::StrCat("models/", c.model, ".pbtxt"),
         "--strategy", absl::StrCat("models/", c.strategy, ".pbtxt"), "--data",
         "synthetic:32", "--batch-size", "16", "--epochs", "1", "--out", out});
    ASSERT_EQ(run.exit_code(), 0) << run.err;
    const json summary = json::parse(ReadAll(out + "/summary.json"));
    const double planned = summary["planned_bytes"];
    const double peak = summary["peak_bytes"];
    EXPECT_GT(planned, 10000);
    EXPECT_LE(std::fabs(peak - planned), planned / 100)
        << planned << " planned, measured " << peak;
  }
}

}  // namespace
}  // namespace halftone
