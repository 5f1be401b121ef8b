#include "runtime/report/tensorboard_log.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/report/testing/log_files.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The bytes of the one event file after these events.
template <typename... Events>
std::string Written(const Events&... events) {
  const std::string directory = NewPath();
  auto log = TensorBoardLog::Create(directory);
  EXPECT_TRUE(log.ok()) << log.status();
  RunObserver& observer = **log;
  (observer.On(events), ...);
  EXPECT_TRUE(observer.Flush().ok());
  return *ReadFile(std::filesystem::directory_iterator(directory)->path());
}

// A Value { tag, simple_value } as it lies in a record.
std::string Scalar(const std::string& tag, float value) {
  std::string bytes("\x0a");
  bytes += static_cast<char>(tag.size());
  bytes += tag + "\x15";
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return bytes;
}

TEST(TensorBoardLog, HoldsWhatStepsAndEvalsSay) {
  StepEvent step;
  step.step = 10;
  step.loss = 0.5f;
  step.skipped = 2;
  step.lr = 0.25f;
  step.loss_scaling = 32768;
  step.grad_norm = 1.5f;
  step.fetches = {{"logits:norm", {12}}, {"fc.b", {1, 2}}};
  step.times.per_step = {6, 0.5, 4.5, 0.25, 0.125};
  step.times.samples_per_second = 930;
  EvalEvent eval;
  eval.step = 10;
  eval.loss = 0.125;
  eval.metrics = {{"top1", 0.75, 3, 4}};
  const std::string bytes = Written(step, eval);
  for (const auto& [tag, value] :
       std::vector<std::pair<std::string, float>>{{"loss", 0.5f},
                                                  {"skipped", 2},
                                                  {"lr", 0.25f},
                                                  {"loss_scaling", 32768},
                                                  {"grad_norm", 1.5f},
                                                  {"logits:norm", 12},
                                                  {"samples_per_second", 930},
                                                  {"ms/step", 6},
                                                  {"ms/data", 0.5f},
                                                  {"ms/fwd_bwd", 4.5f},
                                                  {"ms/comm", 0.25f},
                                                  {"ms/update", 0.125f},
                                                  {"eval/loss", 0.125f},
                                                  {"eval/top1", 0.75f}}) {
    EXPECT_THAT(bytes, HasSubstr(Scalar(tag, value))) << tag;
  }
  EXPECT_THAT(bytes, Not(HasSubstr("fc.b")));  // no scalar
}

TEST(TensorBoardLog, LeavesTheRestToOthers) {
  EXPECT_EQ(
      Written(RunStarted(), SkipEvent(), ProgressEvent(), RunEnded()).size(),
      Written().size());
}

// Event { step: 47 session_log { status: START } }, before anything of a step.
TEST(TensorBoardLog, ARunThatGoesOnDropsTheStepsThatComeAgain) {
  RunStarted run;
  run.resumed = Resumed();
  run.resumed->step = 46;
  StepEvent step;
  step.step = 47;
  const std::string bytes = Written(run, step);
  const size_t mark = bytes.find(std::string("\x10\x2f\x3a\x02\x08\x01", 6));
  EXPECT_NE(mark, std::string::npos);
  EXPECT_LT(mark, bytes.find("loss"));
}

// Where one graph is a step nobody knows its parts.
TEST(TensorBoardLog, PartsThatAreNotKnown) {
  RunStarted run;
  run.parts_known = false;
  const std::string bytes = Written(run, StepEvent());
  EXPECT_THAT(bytes, HasSubstr("ms/step"));
  EXPECT_THAT(bytes, Not(HasSubstr("ms/comm")));
}

std::string Doubles(const std::vector<double>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(double));
}

TEST(TensorBoardLog, HoldsHistograms) {
  StepEvent step;
  FetchedValue hist = {"w:hist", {-1, 1, 0, 3, 0, 0, 5}, /*histogram=*/true};
  FetchedValue exponents = {"w.grad:exponents"};
  exponents.exponents.emplace();
  exponents.exponents->histogram.flushed = 2;
  exponents.exponents->histogram.bins[0] = 6;
  step.fetches = {hist, exponents};
  step.exponents = exponents.exponents;
  const std::string bytes = Written(step);
  EXPECT_THAT(bytes, AllOf(HasSubstr(Doubles({-0.5, 0, 0.5, 1})),
                           HasSubstr(Doubles({3, 0, 0, 5}))));
  // Those that are flushed lie below the least exponent.
  EXPECT_THAT(bytes, AllOf(HasSubstr(Doubles({-24, -23, -22})),
                           HasSubstr(Doubles({15, 16, 17})),
                           HasSubstr(Doubles({2, 6, 0}))));
  for (const char* tag : {"w.grad:exponents", "exponents"}) {
    EXPECT_THAT(bytes, HasSubstr(Scalar(absl::StrCat(tag, "/flushed"), 0.25f)));
    EXPECT_THAT(bytes, HasSubstr(Scalar(absl::StrCat(tag, "/overflowed"), 0)));
  }
}

TEST(TensorBoardLog, HoldsTheGraph) {
  GraphEvent graph;
  graph.nodes.emplace_back();
  graph.nodes[0].name = "conv1";
  graph.nodes[0].op = "conv2d";
  EXPECT_THAT(Written(graph), HasSubstr(GraphDef(graph.nodes)));
}

// The bytes of TensorBoard's text summary: a string tensor of its plugin.
TEST(TensorBoardLog, HoldsScaleEvents) {
  const ScaleEvent skip = {7, 1, true, "w.grad has inf", 1024, 512};
  const std::string text =
      std::string("\x0a\x16scale_events/first_bad\x42\x12\x08\x07\x42\x0e") +
      "w.grad has inf" + "\x4a\x08\x0a\x06\x0a\x04text";
  const std::string scalar = Scalar("scale_events/loss_scaling", 512);
  EXPECT_THAT(Written(skip), AllOf(HasSubstr(text), HasSubstr(scalar)));
  ScaleEvent raised = skip;
  raised.skipped = false;
  EXPECT_THAT(Written(raised),
              AllOf(Not(HasSubstr("first_bad")), HasSubstr(scalar)));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
