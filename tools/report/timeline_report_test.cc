#include "tools/report/timeline_report.h"

#include <algorithm>
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

using ::testing::AllOf;
using ::testing::HasSubstr;

TimelineQuestion Ranks(int ranks) {
  TimelineQuestion question;
  question.plan.ranks = ranks;
  return question;
}

TEST(TimelineReport, NeedsTimes) {
  const auto text =
      TimelineText(Convnet(), Ranks(2), runtime::TuningTable(), false);
  EXPECT_EQ(ExitCodeOf(text.status()), ExitCode::kUsage);
  EXPECT_THAT(
      std::string(text.status().message()),
      AllOf(HasSubstr("halftone tune MODEL"), HasSubstr("--profile FILE")));
}

TEST(TimelineReport, NamesEachBucketOnOneScreen) {
  const auto text = TimelineText(Convnet(), Ranks(16), MeasuredRates(), false);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(
      *text,
      AllOf(HasSubstr("ranks        16 on cpu, 8 a machine"),
            HasSubstr("\nbetween      100gbe"), HasSubstr("\ngradients.f16.1 "),
            HasSubstr("\ngradients.f32.0 "), HasSubstr(" others "),
            HasSubstr("\n1,024  "), HasSubstr("\nlimit        ")));
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  EXPECT_LE(lines.size(), 45u);
  for (const absl::string_view line : lines)
    EXPECT_LE(line.size(), 80u) << line;
}

TEST(TimelineReport, AsJson) {
  const auto text = TimelineText(Convnet(), Ranks(2), MeasuredRates(), true);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["overlap"], false);  // CPU ranks
  double exposed = 0;
  for (const auto& c : json["communications"]) {
    EXPECT_GE(c["start_ms"], c["ready_ms"]) << c;
    exposed += double{c["exposed_ms"]};
  }
  EXPECT_NEAR(exposed, json["exposed_ms"], 1e-9);
  EXPECT_NEAR(double{json["compute_ms"]} + exposed, json["step_ms"], 1e-9);
  EXPECT_EQ(json["scaling"].size(), 11u);
  EXPECT_EQ(json["scaling"][0]["exposed_ms"], 0);
  EXPECT_EQ(json["scaling"][0]["efficiency"], 1);
  EXPECT_EQ(json["scaling"][1]["step_ms"], json["step_ms"]);
  EXPECT_LT(json["scaling"][10]["efficiency"], 1);
}

// Streams beside each other, as on a GPU: a bucket waits for the last of its
// gradients and for the collectives before it, and for nothing else.
TEST(TimelineReport, BucketsStartWhenTheirLastGradientIsThere) {
  const CompiledModel many =
      CompileConvnet({{"dist.fuse_grad_size_in_MB", "0.001", "--set"},
                      {"dist.first_bucket_size_in_MB", "0.001", "--set"}});
  auto asked = TimelineAsked(many, Ranks(2), MeasuredRates());
  ASSERT_TRUE(asked.ok()) << asked.status();
  asked->request.overlap = true;
  const runtime::Timeline timeline =
      runtime::TimelineOf(asked->asked.plan, asked->request);
  double wire = 0;
  int buckets = 0, hidden = 0;
  for (const runtime::Communication& c : timeline.communications) {
    if (c.gradients) {
      EXPECT_GT(c.ready_ms, 0);
      EXPECT_DOUBLE_EQ(c.begin_ms, std::max(c.ready_ms, wire));
      hidden += c.exposed_ms < c.end_ms - c.begin_ms;
      ++buckets;
    }
    wire = std::max(wire, c.end_ms);
  }
  EXPECT_GE(buckets, 3);
  EXPECT_GE(hidden, 1);
}

// With latency alone one bucket is best; with streams beside each other and a
// slow link more would be.
TEST(TimelineReport, FindsTheBestBuckets) {
  const CompiledModel many =
      CompileConvnet({{"dist.fuse_grad_size_in_MB", "0.001", "--set"},
                      {"dist.first_bucket_size_in_MB", "0.001", "--set"}});
  const auto found = FindBestBuckets(many, Ranks(2), MeasuredRates());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_GE(found->tried, 3);
  EXPECT_LT(found->best.ms, found->now.ms);
  // All gradients in one bucket of each dtype.
  EXPECT_EQ(found->best.fuse, 0.0625);
  const auto again = FindBestBuckets(many, Ranks(2), MeasuredRates());
  EXPECT_EQ(again->best.first, found->best.first);
}

TEST(TimelineReport, NoBucketsToChoose) {
  const CompiledModel alone =
      CompileConvnet({{"dist.fuse_all_reduce_ops", "false", "--set"}});
  const auto found = FindBestBuckets(alone, Ranks(2), MeasuredRates());
  EXPECT_EQ(ExitCodeOf(found.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(found.status().message()),
              AllOf(HasSubstr("dist.fuse_all_reduce_ops"),
                    HasSubstr("dist.fuse_grad_size_in_MB")));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
