#include "tools/report/run_page.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/report/chart.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string NewRun(const std::string& metrics, const std::string& summary) {
  static int runs = 0;
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-run-", runs++);
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/metrics.jsonl") << metrics;
  if (!summary.empty()) std::ofstream(directory + "/summary.json") << summary;
  return directory;
}

std::string StepLine(int step, const std::string& loss) {
  return absl::StrCat("{\"event\":\"step\",\"step\":", step, ",\"loss\":", loss,
                      ",\"lr\":0.1,\"loss_scaling\":1024,",
                      "\"grad_norm\":2,\"ms\":{\"step\":3,\"data\":1}}\n");
}

RunHistory MustRead(const std::string& directory) {
  auto run = ReadRunHistory(directory);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? std::move(*run) : RunHistory();
}

TEST(ThinnedSeries, KeepsMeansAndExtremes) {
  ThinnedSeries series;
  const int n = 10 * ThinnedSeries::kMost + 7;
  for (int i = 0; i < n; ++i) series.Add(i, i % 100 == 50 ? 1000 : 1);
  EXPECT_LE(series.buckets().size(), ThinnedSeries::kMost);
  EXPECT_GT(series.buckets().size(), ThinnedSeries::kMost / 4);
  int64_t count = 0;
  double sum = 0, most = 0, last = -1;
  for (const auto& bucket : series.buckets()) {
    EXPECT_EQ(bucket.first_step, last + 1);
    last = bucket.last_step;
    count += bucket.count;
    sum += bucket.sum;
    most = std::max(most, bucket.most);
    EXPECT_EQ(bucket.least, 1);
  }
  EXPECT_EQ(count, n);
  EXPECT_EQ(last, n - 1);
  EXPECT_EQ(most, 1000);
  EXPECT_EQ(sum, n + 999.0 * (n / 100));
}

TEST(ThinnedSeries, CountsWhatIsNotFinite) {
  ThinnedSeries series;
  for (double value : std::vector<double>{1, NAN, INFINITY})
    series.Add(0, value);
  ASSERT_EQ(series.buckets().size(), 3);
  EXPECT_EQ(series.buckets()[1].not_finite, 1);
  EXPECT_EQ(series.buckets()[1].count, 0);
}

TEST(RunPageJson, WhatIsNotFiniteIsAString) {
  const std::string eval = "{\"event\":\"eval\",\"step\":3,\"loss\":";
  const RunHistory run =
      MustRead(NewRun(absl::StrCat(StepLine(1, "2.5"), StepLine(2, "\"inf\""),
                                   eval, "\"nan\"}\n"),
                      ""));
  const auto json = nlohmann::json::parse(RunPageJson({run}));
  const nlohmann::json& last = json["runs"][0]["last"];
  EXPECT_EQ(last["loss"], "inf");
  EXPECT_EQ(last["eval loss"], "nan");
  EXPECT_EQ(last["lr"], 0.1);
}

TEST(RunHistory, ReadsEventsAndLeavesTheLastHalfLine) {
  const RunHistory run = MustRead(NewRun(
      absl::StrCat(
          StepLine(1, "2.5"), StepLine(2, "\"inf\""),
          "{\"event\":\"skip\",\"step\":2,\"loss_scaling\":512}\n",
          "{\"event\":\"eval\",\"step\":2,\"loss\":1.5,\"metrics\":{\"top1\":"
          "{\"value\":0.5}}}\n",
          "{\"event\":\"run_start\",\"time\":\"now\"}\n{\"event\":\"st"),
      ""));
  EXPECT_EQ(run.last_step, 2);
  EXPECT_EQ(run.series.at("loss").buckets()[0].mean(), 2.5);
  EXPECT_EQ(run.series.at("loss").buckets()[1].not_finite, 1);
  EXPECT_EQ(run.series.at("loss_scaling").buckets().back().mean(), 512);
  EXPECT_EQ(run.series.at("eval top1").buckets()[0].mean(), 0.5);
  EXPECT_EQ(run.series.at("ms.data").buckets().size(), 2);
  EXPECT_EQ(run.skipped.buckets().size(), 1);
  EXPECT_TRUE(run.summary.is_null());
}

TEST(RunHistory, RefusesWhatIsNoRunOfOurs) {
  const auto error_of = [](const std::string& metrics,
                           const std::string& summary) {
    return std::string(
        ReadRunHistory(NewRun(metrics, summary)).status().message());
  };
  EXPECT_THAT(error_of("5\n", ""),
              HasSubstr("metrics.jsonl:1: expected an event"));
  EXPECT_THAT(error_of(StepLine(1, "2"), "{\"schema\": 9}"),
              HasSubstr("summary.json: schema: expected 1, found 9"));
  EXPECT_EQ(error_of(StepLine(1, "2"), "{\"schema\": 1}"), "");
}

// What f16 holds has been flushed before it was looked at.
TEST(RunHistory, SumsWhatF16Makes0) {
  const auto line = [](int step, const char* name, const char* dtype) {
    return absl::StrCat(
        "{\"event\":\"step\",\"step\":", step, ",\"fetches\":{\"", name,
        "\":{\"dtype\":\"", dtype,
        "\",\"bins\":[1,2],\"zero\":4,\"flushed\":2,\"overflowed\":1}}}\n");
  };
  const RunHistory run = MustRead(NewRun(
      line(1, "w.grad:exponents", "f16") + line(2, "w.grad:exponents", "f16") +
          line(2, "v.grad:exponents", "f32") + line(3, "w:exponents", "f16") +
          "{\"event\":\"step\",\"step\":4,\"fetches\":"
          "{\"u.grad:exponents\":{\"bins\":3,\"dtype\":1}}}\n",
      ""));
  ASSERT_EQ(run.flushed.count("w.grad"), 1);
  EXPECT_EQ(run.flushed.at("w.grad").elements, 20);
  EXPECT_EQ(run.flushed.at("w.grad").lost, 12);
  EXPECT_EQ(run.flushed.at("v.grad").lost, 2);
  EXPECT_EQ(run.flushed.count("w"), 0);
  EXPECT_EQ(run.series.at("gradients flushed").buckets()[0].mean(), 0.6);
  EXPECT_THAT(RunPage({run}), HasSubstr("elements that f16 makes 0"));
}

TEST(RunHistory, SaysWhatIsWrong) {
  EXPECT_THAT(std::string(ReadRunHistory("/nowhere").status().message()),
              HasSubstr("/nowhere: no run directory: it has no metrics.jsonl"));
  const std::string broken = NewRun(StepLine(1, "1") + "{\"event\n", "");
  EXPECT_THAT(std::string(ReadRunHistory(broken).status().message()),
              HasSubstr("metrics.jsonl:2"));
  const std::string summary = NewRun("", "[1,");
  EXPECT_THAT(std::string(ReadRunHistory(summary).status().message()),
              HasSubstr("summary.json"));
  for (const char* line : {"1\n", "[]\n"}) {
    const std::string other = NewRun(StepLine(1, "1") + line, "");
    EXPECT_THAT(std::string(ReadRunHistory(other).status().message()),
                HasSubstr("metrics.jsonl:2: expected an event"));
  }
  // Of the wrong kinds: left out.
  const RunHistory odd =
      MustRead(NewRun("{\"event\":\"step\",\"step\":\"x\"}\n"
                      "{\"event\":\"step\",\"step\":1,\"loss\":[],\"ms\":3}\n",
                      "[1]"));
  EXPECT_TRUE(odd.series.empty());
  EXPECT_THAT(RunPage({odd}), HasSubstr("<h1>" + odd.directory));
}

TEST(RunPage, RunsSideBySide) {
  const RunHistory ended = MustRead(
      NewRun(StepLine(1, "2.5") + StepLine(2, "1.5"),
             "{\"exit\":0,\"loss_last\":1.5,\"peak_bytes\":2097152,"
             "\"metrics\":{\"top1\":{\"value\":0.975}},"
             "\"strategy\":\"amp { level: \\\"<O1>\\\" }\","
             "\"profile\":{\"dearest\":[{\"name\":\"conv1\",\"ms\":1.5}]}}"));
  RunHistory other = MustRead(NewRun(StepLine(1, "3.5"), ""));
  other.directory = "runs/<b>\"x";
  const std::string page = RunPage({ended, other});
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("<td>state</td><td class=\"r\">ended</td><td class=\"r\">"
                      "goes on, or was killed</td>"),
            HasSubstr("2.0 MiB"), HasSubstr("top1 0.975"),
            HasSubstr("level: &quot;&lt;O1&gt;&quot;"), HasSubstr("conv1"),
            HasSubstr("runs/&lt;b&gt;&quot;x"), Not(HasSubstr("<b>\"x"))));
  // Nothing is fetched.
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http")), Not(HasSubstr("src="))));
}

TEST(RunPage, OfALongRunIsSmall) {
  std::string metrics;
  for (int step = 1; step <= 100000; ++step) {
    metrics += StepLine(step, absl::StrCat(1.0 + 1000.0 / step));
  }
  const std::string page = RunPage({MustRead(NewRun(metrics, ""))});
  EXPECT_LT(page.size(), 3 << 20);
  EXPECT_THAT(page, HasSubstr("100,000"));
}

// A double that large does not grow by one.
TEST(Chart, TheLinesOfAGridAreFew) {
  for (const auto& [first, last] : std::vector<std::pair<double, double>>{
           {1e16, 1e16},
           {9007199254740992, 9007199254740994},
           {1e17, 1e17 + 16},
           {9.3e18, 9.3e18},
           {1e300, 1e300}}) {
    ThinnedSeries series;
    series.Add(first, first);
    series.Add(last, last);
    const std::string chart = ChartHtml("t", {{"n", 0, &series}});
    EXPECT_LT(chart.size(), 10000) << first;
    EXPECT_THAT(chart, Not(HasSubstr("nan"))) << first;
  }
}

TEST(RunHistory, HoldsTheLastStepWhateverItIs) {
  const RunHistory run =
      MustRead(NewRun("{\"event\":\"step\",\"step\":1e300,\"loss\":1}\n", ""));
  EXPECT_GT(run.last_step, int64_t{1} << 60);
}

TEST(Chart, AxesFitTheValues) {
  ThinnedSeries level, wide, nothing;
  level.Add(5, 2);
  for (int i = 0; i < 4; ++i) wide.Add(i, std::pow(10.0, i));
  nothing.Add(0, NAN);
  EXPECT_EQ(ChartHtml("t", {{"n", 0, &nothing}}), "");
  EXPECT_EQ(ChartHtml("t", {}), "");
  EXPECT_THAT(ChartHtml("t", {{"level", 0, &level}}),
              AllOf(HasSubstr("data-log=\"0\""), HasSubstr("M70.0 112.5")));
  const std::string log = ChartHtml("t", {{"wide", 0, &wide}});
  EXPECT_THAT(log, AllOf(HasSubstr("data-log=\"1\""),
                         HasSubstr("M70.0 215.0L376.7 146.7L683.3 78.3L990.0 "
                                   "10.0")));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
