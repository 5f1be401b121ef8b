#include "tools/report/run_verdict.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunHistory RunOf(const std::string& name, const std::vector<double>& losses) {
  RunHistory run;
  run.directory = name;
  run.summary = {{"exit", 0}};
  for (const double loss : losses) {
    run.series["loss"].Add(static_cast<double>(++run.last_step), loss);
  }
  return run;
}

std::string Of(const RunHistory& run, const std::vector<RunHistory>& all = {}) {
  return Text(VerdictOf(run, all));
}

// A summary's strategy, as a run resolves it.
nlohmann::json Summary(const std::string& amp) {
  return {{"exit", 0},
          {"strategy", absl::StrCat("amp { dtype: \"fp16\" ", amp, " }")}};
}

TEST(RunVerdict, TrainsStandsStillOrDiverged) {
  EXPECT_EQ(Of(RunOf("a", {2.3, 1.5, 0.5})), "trains");
  EXPECT_EQ(Of(RunOf("a", {2.3, 2.29, 2.28})), "stands still");
  EXPECT_EQ(Of(RunOf("a", {2.3, 2.9, 3})), "stands still");
  EXPECT_EQ(Of(RunOf("a", {2.3, 1.5, NAN})), "diverged");
  EXPECT_EQ(Of(RunOf("a", {})), "");
  RunHistory stopped = RunOf("a", {2.3, 1.5});
  stopped.summary = {{"exit", 5}};
  EXPECT_EQ(Of(stopped), "diverged");
  RunHistory evaluated = RunOf("a", {2.3, 1.5, 0.5});
  evaluated.series["eval loss"].Add(1, 2);
  EXPECT_EQ(Of(evaluated), "trains");
  evaluated.series["eval loss"].Add(3, NAN);
  EXPECT_EQ(Of(evaluated), "diverged: the eval loss is nan");
}

TEST(RunVerdict, IsEmptyWhileNothingIsKnown) {
  EXPECT_EQ(Of(RunOf("a", {2.3})), "");
  EXPECT_EQ(Of(RunOf("a", {NAN})), "diverged");
  const RunHistory best = RunOf("best", {2.3, 0.3});
  EXPECT_EQ(Of(RunOf("a", {2.3}), {best}), "");
  // One that goes on has a few steps behind it before it stands still.
  RunHistory begun = RunOf("begun", {2.3, 2.3, 2.3});
  begun.summary = nullptr;
  EXPECT_EQ(Of(begun, {best}), "");
  for (int i = 0; i < 6; ++i) begun.series["loss"].Add(++begun.last_step, 2.3);
  EXPECT_EQ(Of(begun, {best}), "");
  begun.series["loss"].Add(++begun.last_step, 2.3);
  EXPECT_EQ(Of(begun, {best}), "stands still");
  begun.failure = {{"exit_code", 5}};
  EXPECT_EQ(Of(begun, {best}), "diverged");
}

TEST(RunVerdict, FallsBehindTheBest) {
  const RunHistory best = RunOf("best", {2.3, 0.3});
  const RunHistory near = RunOf("near", {2.3, 0.7});
  const RunHistory far = RunOf("far", {2.3, 1.4});
  const std::vector<RunHistory> all = {far, best, near};
  EXPECT_EQ(Of(best, all), "trains");
  EXPECT_EQ(Of(near, all), "trains");
  EXPECT_EQ(Of(far, all), "falls behind best");
  // What evals say goes before.
  RunHistory worse = best, better = near;
  worse.directory = "worse";
  worse.series["eval top1"].Add(1, 0.5);
  better.series["eval top1"].Add(1, 0.9);
  EXPECT_EQ(Of(worse, {worse, better}), "falls behind near");
  EXPECT_EQ(Of(better, {worse, better}), "trains");
}

TEST(RunVerdict, SaysWhy) {
  RunHistory run = RunOf("a", {2.3, 2.3, 2.3, 2.3});
  run.summary = Summary(
      "level: \"O3\" master_weights: false loss_scaling { "
      "use_dynamic_loss_scaling: false init_loss_scaling: 1 "
      "min_loss_scaling: 1 }");
  run.series["loss_scaling"].Add(4, 1);
  run.flushed["w.grad"] = {100, 97};
  run.flushed["v.grad"] = {100, 3};
  EXPECT_EQ(Of(run),
            "stands still: 50 % of the gradients' elements are 0 in f16, of "
            "w.grad 97 %; parameters have no f32 copies: less than 2^-11 of "
            "one changes nothing in f16");
  // A scale that is constant is not at its least.
  run.summary = Summary(
      "level: \"O1\" master_weights: true loss_scaling { "
      "use_dynamic_loss_scaling: true init_loss_scaling: 32768 "
      "min_loss_scaling: 1 }");
  run.skipped.Add(3, 1);
  EXPECT_THAT(Of(run), HasSubstr("1 of 4 steps was skipped; the loss scale is "
                                 "at its least, 1; 50 %"));
  run.flushed = {{"w.grad", {1000, 1}}};
  EXPECT_THAT(Of(run), Not(HasSubstr("in f16")));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
