// What any run does, on a model of element-wise ops.
#include <signal.h>
#include <sys/resource.h>

#include <cstdio>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

CompiledModel ScaleModel(const std::vector<std::string>& overrides = {}) {
  auto model = CompileText(kScaleModel, kScaleStrategy, overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(TrainerTest, LearnsAndReports) {
  const std::string out = FreshDirectory();
  const CompiledModel model = ScaleModel({"train.epochs=5"});
  TrainConfig config = ConfigOf(model, "synthetic:200", out);
  const Trained trained = TrainOn(model, config, 1);
  ASSERT_TRUE(trained.status.ok()) << trained.status;
  EXPECT_EQ(trained.signal, 0);
  const Json summary = Summary(out);
  EXPECT_EQ(summary["exit"], 0);
  EXPECT_EQ(summary["steps_attempted"], 13 * 5);
  EXPECT_EQ(summary["steps_applied"], 13 * 5);
  EXPECT_EQ(summary["epochs"], 5);
  EXPECT_LT(summary["loss_last"].get<double>(),
            summary["loss_first"].get<double>());
  EXPECT_EQ(summary["metrics"]["top1"]["total"], 50);
  // One event every ten steps and at each epoch's end.
  const std::vector<Json> steps = Events(out, "step");
  std::vector<int> numbers;
  double n = 0;
  for (const Json& event : steps) {
    numbers.push_back(event["step"]);
    n += event["n"].get<double>();
  }
  EXPECT_THAT(numbers, ::testing::ElementsAre(10, 13, 20, 26, 30, 39, 40, 50,
                                              52, 60, 65));
  EXPECT_EQ(n, 5 * 200);
  EXPECT_EQ(Events(out, "eval").size(), 5u);
  EXPECT_EQ(Newest(out).manifest.step, 65);
}

TEST(TrainerTest, AUsedDirectoryIsRefused) {
  const CompiledModel model = ScaleModel();
  const TrainConfig config = ConfigOf(model, "synthetic:64", FreshDirectory());
  ASSERT_TRUE(TrainOn(model, config, 1).status.ok());
  const std::string before = *ReadFile(config.out + "/summary.json");
  const absl::Status status = TrainOn(model, config, 2).status;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("holds step 8; add --resume or another --out"));
  EXPECT_EQ(*ReadFile(config.out + "/summary.json"), before);
}

TEST(TrainerTest, WithoutADirectoryNothingIsWritten) {
  const CompiledModel model = ScaleModel();
  const TrainConfig config = ConfigOf(model, "synthetic:64", "");
  EXPECT_TRUE(TrainOn(model, config, 2).status.ok());
}

// Logits of 3e38 twice over are infinite, and softmax makes NaN of them.
TEST(TrainerTest, ALossThatIsNotFiniteStopsTheRun) {
  std::string text = kScaleModel;
  for (const std::string init :
       {"init { constant: 1 }", "init { uniform { bound: 0.1 } }"}) {
    text.replace(text.find(init), init.size(), "init { constant: 3e38 }");
  }
  auto model = CompileText(text, kScaleStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:64", FreshDirectory());
  const Trained trained = TrainOn(*model, config, 1);
  EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kDiverged) << trained.status;
  EXPECT_THAT(std::string(trained.status.message()),
              ::testing::AllOf(HasSubstr("the loss is not finite in 3 steps"),
                               HasSubstr("first non-finite op: "),
                               HasSubstr("loss scale")));
  EXPECT_EQ(Summary(config.out)["exit"], 5);
  EXPECT_EQ(Summary(config.out)["steps_applied"], 0);
}

TEST(TrainerTest, EvalAloneIsTheTrainersLast) {
  const CompiledModel model = ScaleModel();
  TrainConfig config = ConfigOf(model, "synthetic:124", FreshDirectory());
  ASSERT_TRUE(TrainOn(model, config, 1).status.ok());
  for (const int ranks : {1, 2, 3}) {
    const auto report = EvaluateOn(model, config, ranks);
    ASSERT_TRUE(report.ok()) << report.status();
    const Json summary = Summary(config.out);
    EXPECT_EQ(report->samples, 31);
    EXPECT_EQ(report->metrics.at("top1").correct,
              summary["metrics"]["top1"]["correct"].get<double>());
    EXPECT_NEAR(report->loss, summary["eval_loss"], 1e-6);
  }
}

TEST(TrainerTest, InitTakesParametersByName) {
  const CompiledModel model = ScaleModel();
  TrainConfig first = ConfigOf(model, "synthetic:64", FreshDirectory() + "/a");
  ASSERT_TRUE(TrainOn(model, first, 1).status.ok());
  TrainConfig second = ConfigOf(model, "synthetic:64", FreshDirectory() + "/b");
  second.init = first.out;
  second.strategy.mutable_train()->set_epochs(0);
  ASSERT_TRUE(TrainOn(model, second, 2).status.ok());
  EXPECT_EQ(Values(Newest(first.out), "w"), Values(Newest(second.out), "w"));
  EXPECT_EQ(Newest(second.out).manifest.step, 0);
}

TEST(TrainerTest, FetchesGoToTheLog) {
  const CompiledModel model = ScaleModel();
  TrainConfig config = ConfigOf(model, "synthetic:64", FreshDirectory());
  config.fetches = {"b.grad:norm", "logits:hist", "logits:npz"};
  config.log_every = 2;
  Trained trained = TrainOn(model, config, 1);
  ASSERT_TRUE(trained.status.ok()) << trained.status;
  EXPECT_TRUE(ReadFile(config.out + "/fetches/step-4.npz").ok());
  EXPECT_THAT(
      *ReadFile(config.out + "/metrics.jsonl"),
      ::testing::AllOf(HasSubstr("b.grad:norm"), HasSubstr("logits:hist")));
  config.out += ".other";
  config.fetches = {"logit"};
  trained = TrainOn(model, config, 1);
  EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kUsage) << trained.status;
  EXPECT_THAT(std::string(trained.status.message()), HasSubstr("logits"));
}

// A disk that is full for a while: files may not grow beyond a few bytes.
TEST(TrainerTest, ADiskThatIsFullForAWhile) {
  const CompiledModel model = ScaleModel({"train.epochs=3"});
  TrainConfig config = ConfigOf(model, "synthetic:64", FreshDirectory());
  config.log_every = 1000;
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);  // write() then fails, as on a full disk
  config.on_activity = [&](int64_t step, const char* what) {
    if (step == 8 && std::string(what) == "checkpoint") {
      struct rlimit full = before;
      full.rlim_cur = 100;
      setrlimit(RLIMIT_FSIZE, &full);
    }
    if (step == 9 && std::string(what) == "train") {
      setrlimit(RLIMIT_FSIZE, &before);
    }
  };
  const absl::Status status = TrainOn(model, config, 2).status;
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<int64_t> steps;
  for (const CheckpointInfo& info : ListCheckpoints(config.out + "/ckpt")) {
    EXPECT_TRUE(ReadCheckpoint(info.path).ok()) << info.path;
    steps.push_back(info.step);
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(12, 4));  // 8 is the one missing
  EXPECT_EQ(Summary(config.out)["steps_applied"], 12);
}

TEST(TrainerTest, CheckpointsThatCannotBeWritten) {
  const CompiledModel model = ScaleModel({"train.epochs=3"});
  TrainConfig config = ConfigOf(model, "synthetic:64", FreshDirectory());
  const std::string ckpt = config.out + "/ckpt";
  // From step 5 on, a file is where the directory of checkpoints should be.
  std::string saved = config.out + ".saved";
  config.on_activity = [&](int64_t step, const char* what) {
    if (step == 6 && std::string(what) == "train") {
      ASSERT_EQ(::rename(ckpt.c_str(), saved.c_str()), 0);
      ASSERT_TRUE(WriteFileAtomically(ckpt, "in the way").ok());
    }
  };
  // Earlier ones: a warning, and the run goes on; the last one: exit 8.
  const absl::Status status = TrainOn(model, config, 2).status;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCheckpoint) << status;
  EXPECT_EQ(Summary(config.out)["exit"], 8);
  EXPECT_EQ(Summary(config.out)["steps_applied"], 12);
  EXPECT_EQ(ReadCheckpoint(saved + "/step-4")->manifest.step, 4);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
