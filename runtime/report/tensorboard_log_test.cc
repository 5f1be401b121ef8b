#include "runtime/report/tensorboard_log.h"

#include <filesystem>
#include <string>
#include <vector>

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
