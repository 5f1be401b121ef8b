#include "tools/report/roofline_report.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RooflineReport, NeedsRates) {
  const auto text =
      RooflineText(Convnet(), {1, 0}, runtime::TuningTable(), false);
  EXPECT_EQ(ExitCodeOf(text.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(text.status().message()),
              HasSubstr("measure it: halftone tune MODEL"));
}

TEST(RooflineReport, FitsIntoEightyColumns) {
  const auto text = RooflineText(Convnet(), {1, 0}, MeasuredRates(), false);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, StartsWith("ranks        1 on cpu, batch 64\n"
                                "rates        a CPU, measured: 20 GB/s, 400 "
                                "GFLOP/s in f32, 500 GFLOP/s in 16 bit\n"));
  EXPECT_THAT(*text, HasSubstr(" class\n"));
  EXPECT_THAT(*text, HasSubstr("\npredicted    "));
  EXPECT_THAT(*text, HasSubstr(" img/s\n"));
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(*RooflineText(Convnet(), {2, 0}, MeasuredRates(), false),
              HasSubstr("\nnote         what ranks send each other is not "
                        "counted"));
}

TEST(RooflineReport, AsJson) {
  const auto text = RooflineText(Convnet(), {1, 0}, MeasuredRates(), true);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["device"], "a CPU");
  EXPECT_EQ(json["measured"], true);
  EXPECT_EQ(json["rates"]["memory"], 20e9);
  double steps = 0, classes = 0, last = 1e9;
  for (const auto& step : json["steps"]) {
    const double ms = step["ms"];
    EXPECT_LE(ms, last);
    last = ms;
    steps += ms;
    // Of measured rates kernels reach all.
    const double bytes = step["bytes"];
    EXPECT_GE(ms * 1.0000001, bytes / 20e6) << step;
  }
  for (const auto& row : json["classes"]) classes += double{row["ms"]};
  const double whole = json["step_ms"];
  EXPECT_NEAR(steps, whole, 1e-9);
  EXPECT_NEAR(classes, whole, 1e-9);
  EXPECT_NEAR(json["samples_per_second"], 64 / whole * 1000, 1e-6);
}

}  // namespace
}  // namespace tools
}  // namespace halftone
