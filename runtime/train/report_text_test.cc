#include "runtime/train/report_text.h"

#include <cmath>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "gtest/gtest.h"
#include "runtime/device/fake_device.h"
#include "runtime/train/epoch_line.h"
#include "runtime/train/fetches.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SizedData : public Dataset {
 public:
  explicit SizedData(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  absl::Status Read(int64_t, int, absl::Span<uint8_t>) const override {
    return absl::FailedPreconditionError("a text needs no samples");
  }
  std::string Description() const override { return "data"; }

 private:
  int64_t size_;
};

// The digits on two ranks, as far as the lines need them.
class ReportText : public ::testing::Test {
 protected:
  ReportText() : data_(RunData()), times_(/*expected_steps=*/115) {
    data_->specs = {{"image", DType::kU8, {1, 28, 28}}, {"label", DType::kI64}};
    data_->train = &train_;
    data_->test = &test_;
    config_.strategy.mutable_train()->set_epochs(5);
    program_.metrics = {{"top1", "correct", "label"}};
    rank_.inputs.program = &program_;
    rank_.inputs.config = &config_;
    rank_.inputs.data = &data_;
    rank_.sampler.size = train_.size();
    rank_.sampler.batch = 64;
    rank_.sampler.world_size = 2;
    end_.rank = &rank_;
    end_.times = &times_;
  }

  const SizedData train_{1438}, test_{359};
  absl::StatusOr<RunData> data_;
  TrainConfig config_;
  Program program_;
  Rank rank_;
  RunTimes times_;
  EndOfRun end_;
};

TEST(SplitText, NamesEveryShare) {
  EXPECT_EQ(SplitText(64, 1), "64");
  EXPECT_EQ(SplitText(64, 2), "64 = 2 x 32");
  EXPECT_EQ(SplitText(31, 2), "31 = 16 + 15");
  EXPECT_EQ(SplitText(64, 3), "64 = 22 + 2 x 21");
  EXPECT_EQ(SplitText(5, 4), "5 = 2 + 3 x 1");
  EXPECT_EQ(SplitText(1, 8), "1 on 1 of 8 ranks");
  EXPECT_EQ(SplitText(4096, 2), "4,096 = 2 x 2,048");
}

TEST_F(ReportText, Data) {
  EXPECT_EQ(DataLine(rank_),
            "data     1,438 train, 359 test; batch 64 = 2 x 32, last of an "
            "epoch 30 = 2 x 15; 23 steps x 5 epochs = 115");
  data_->test = nullptr;
  config_.strategy.mutable_train()->set_epochs(1);
  rank_.sampler.world_size = 1;
  rank_.sampler.batch = 1438;
  EXPECT_EQ(DataLine(rank_),
            "data     1,438 train, no test split: nothing is evaluated; batch "
            "1,438; 1 step x 1 epoch = 1");
}

TEST_F(ReportText, Epoch) {
  StepEvent event;
  event.step = 69;
  event.applied = 68;
  event.epoch = 3;
  event.loss = 0.1131f;
  event.lr = 0.01f;
  event.loss_scaling = 32768;
  event.good_steps = 45;
  event.grad_norm = 1.9f;
  EventTimes times;
  times.per_step = {5.74, 0.0004, 4.91, 0.62, 0.2};
  times.samples_per_second = 11234;
  EXPECT_EQ(EpochLine(rank_, event, times, 0),
            "epoch 3/5  step 69/115  loss 0.113  lr 0.01  scale 32768 good 45  "
            "skipped 1  |g| 1.9  11.2k img/s  5.74 ms = data 0 + fwd/bwd 4.91 "
            "+ comm 0.62 + update 0.2 + other 0.01  eta 0 s");
  data_->specs = {{"tokens", DType::kI64, {128}}};
  event.loss = 12345;
  times.samples_per_second = 2.31;
  times.per_step = {3340, 3, 3000, 300, 37};
  EXPECT_EQ(EpochLine(rank_, event, times, 0),
            "epoch 3/5  step 69/115  loss 12345  lr 0.01  scale 32768 good 45  "
            "skipped 1  |g| 1.9  2.31 samples/s  3340 ms = data 3 + fwd/bwd "
            "3000 + comm 300 + update 37  eta 3 min");
}

// However narrow it is, loss, rate and time to go are there, and what is there
// fits.
TEST_F(ReportText, EpochInFewColumns) {
  StepEvent event;
  event.step = 69;
  event.applied = 69;
  event.epoch = 3;
  event.loss = 0.1131f;
  event.lr = 0.01f;
  event.loss_scaling = 32768;
  event.grad_norm = 1.9f;
  EventTimes times;
  times.per_step = {5.74, 0.0004, 4.91, 0.62, 0.2};
  times.samples_per_second = 11234;
  size_t before = 0;
  for (int room = 34; room < 200; ++room) {
    const std::string line = EpochLine(rank_, event, times, room);
    EXPECT_LE(line.size(), static_cast<size_t>(room));
    EXPECT_GE(line.size(), before);
    before = line.size();
    EXPECT_THAT(line, AllOf(HasSubstr("loss 0.113"), HasSubstr("11.2k img/s"),
                            HasSubstr("eta 0 s")));
  }
  EXPECT_EQ(EpochLine(rank_, event, times, 79),
            "epoch 3/5  step 69/115  loss 0.113  lr 0.01  scale 32768  11.2k "
            "img/s  eta 0 s");
  // Skipped steps are news.
  event.applied = 60;
  EXPECT_THAT(EpochLine(rank_, event, times, 79), HasSubstr("skipped 9"));
}

TEST(StepTimesText, PartsSumToTheWhole) {
  const auto number = [](const std::string& text, size_t* at) {
    return std::stod(text.substr(*at), nullptr);
  };
  for (double total = 0.0371; total < 1e5; total *= 1.37) {
    const StepTimes ms = {total, total * 0.0731, total * 0.5173, total * 0.2319,
                          total * 0.0517};
    for (const bool known : {true, false}) {
      const std::string text = StepTimesText(ms, known);
      size_t at = 0;
      const double whole = number(text, &at);
      EXPECT_NEAR(whole, total, total < 0.1 ? 0.0005 : 0.005 * total);
      double sum = 0;
      for (const char* part :
           {"data ", "fwd/bwd ", "comm ", "update ", "other ", "device "}) {
        at = text.find(part);
        if (at == std::string::npos) continue;
        at += std::string(part).size();
        sum += number(text, &at);
      }
      EXPECT_NEAR(sum, whole, 1e-9 * whole) << text;
    }
  }
}

TEST(LossLine, SaysWhatBecameOfTheStep) {
  NotFiniteEvent event;
  event.step = 70;
  event.loss = INFINITY;
  event.in_a_row = 1;
  EXPECT_EQ(LossLine(event, 3),
            "step 70  warning: the loss is inf, its gradients are finite: "
            "applied; 1 of 3 in a row that end the run");
  EXPECT_THAT(LossLine(event, 0), EndsWith("applied"));
}

TEST(SkipLine, SaysWhatTheScaleDoes) {
  SkipEvent event;
  event.step = 70;
  event.first_bad = "conv2.w.grad has inf";
  event.bad_steps = 1;
  event.loss_scaling = 32768;
  EXPECT_EQ(SkipLine(event, 32768, 2),
            "step 70  skipped: conv2.w.grad has inf; bad 1 of 2, scale stays "
            "32768");
  EXPECT_EQ(SkipLine(event, 32768, 0),
            "step 70  skipped: conv2.w.grad has inf; bad 1, scale stays "
            "32768");
  event.loss_scaling = 16384;
  EXPECT_EQ(SkipLine(event, 32768, 2),
            "step 70  skipped: conv2.w.grad has inf; scale 32768 -> 16384");
}

TEST(SkipLine, AtTheFloor) {
  SkipEvent event;
  event.step = 33;
  event.first_bad = "conv1.w.grad has nan";
  event.loss_scaling = 1;
  EXPECT_EQ(SkipLine(event, 1, 2),
            "step 33  skipped: conv1.w.grad has nan; bad 2 of 2, scale stays "
            "at its floor 1");
}

TEST(FetchLine, NumbersElementsAndHistograms) {
  StepEvent event;
  EXPECT_EQ(FetchLine(event), "");
  std::vector<float> histogram(3 + kBins);
  histogram[0] = -0.125;
  histogram[1] = 2;
  histogram[2] = 1;
  event.fetches = {{"logits:norm", {12.345f}},
                   {"fc.b", {1, -NAN, 0.5f}},
                   {"fc.w.grad:hist", histogram}};
  EXPECT_EQ(FetchLine(event),
            "fetch    logits:norm 12.3, fc.b [1 nan 0.5], fc.w.grad:hist "
            "-0.125 .. 2, 1 not finite");
}

TEST(EvalLine, MetricsThenLoss) {
  EvalEvent event;
  event.epoch = 3;
  event.loss = 0.1214f;
  event.metrics = {{"top1", 0.969, 348, 359}};
  EXPECT_EQ(EvalLine(event), "eval 3   top1 96.9 % (348/359)  loss 0.121");
  event.metrics.clear();
  EXPECT_EQ(EvalLine(event), "eval 3   loss 0.121");
}

TEST_F(ReportText, MetricsInTheModelsOrder) {
  program_.metrics = {{"top5", "c5", "label"}, {"top1", "c1", "label"}};
  EvalReport report;
  report.metrics = {{"top1", {350, 359}}, {"top5", {359, 359}}};
  EXPECT_EQ(MetricsText(program_, report),
            "top5 100.0 % (359/359), top1 97.5 % (350/359)");
  report.metrics.clear();
  report.loss = 0.25;
  EXPECT_EQ(MetricsText(program_, report), "eval loss 0.25");
}

TEST_F(ReportText, Done) {
  Progress& p = rank_.progress;
  p.epoch = 5;
  p.step = 115;
  p.applied = 114;
  p.first_loss = 2.308;
  p.last_loss = 0.0311;
  p.loss_scaling = 32768;
  p.eval.metrics = {{"top1", {350, 359}}};
  p.eval_step = p.best_step = 115;
  p.best_epoch = 5;
  const std::string line = DoneLine(end_);
  EXPECT_THAT(line, StartsWith("done     5 epochs, 114 steps applied, 1 "
                               "skipped, "));
  EXPECT_THAT(line, HasSubstr(" s; loss 2.31 -> 0.0311; scale 32768; top1 97.5 "
                              "% (350/359), best at epoch 5"));
  p.epoch = p.applied = 1;
  end_.signal = 15;
  EXPECT_THAT(DoneLine(end_), StartsWith("done     stopped by signal 15 in "
                                         "epoch 2, 1 step applied, 114 "
                                         "skipped, "));
}

// An earlier run's eval is not this one's.
TEST_F(ReportText, EvalsOfARunThatGoesOn) {
  Progress& p = rank_.progress;
  EXPECT_FALSE(HasEval(rank_));
  p.step = p.eval_step = 46;
  EXPECT_TRUE(HasEval(rank_));
  p.step = 60;
  EXPECT_TRUE(HasEval(rank_));  // its own, of some steps ago
  rank_.start.resumed = true;
  rank_.start.numbers["step"] = 46;
  EXPECT_FALSE(HasEval(rank_));
  p.eval_step = 60;
  EXPECT_TRUE(HasEval(rank_));
  // Nothing was left to do: the eval is of the very state.
  p.step = p.eval_step = 46;
  EXPECT_TRUE(HasEval(rank_));
  config_.eval_every.unit = Cadence::Unit::kNever;
  EXPECT_FALSE(HasEval(rank_));
  EXPECT_THAT(DoneLine(end_), Not(HasSubstr("eval loss")));
}

TEST_F(ReportText, Speed) {
  EXPECT_THAT(SpeedLine(end_), StartsWith("speed    time: compute 0 %"));
  times_.steps.Add({3340, 20, 1900, 700, 20}, 64);
  for (int i = 0; i < 3; ++i) {
    times_.steps.Add({5.5, 0.5, 2.5, 1.5, 0.5}, 64);
  }
  times_.eval_seconds = 0.2;
  times_.checkpoint_seconds = 0.1;
  // More than the clock of a test that runs no step has counted.
  EXPECT_EQ(SpeedLine(end_),
            "speed    11.6k img/s, step median 5.5 ms p95 5.5, first 3340 ms "
            "left out; time: compute 65 %, exposed comm 24, data 1, eval 7, "
            "checkpoint 3, other 0");
  // A device that says nothing of a step's parts.
  const auto device = MakeFakeDevice({});
  rank_.resources.device = device.get();
  EXPECT_THAT(SpeedLine(end_), HasSubstr("left out; time: device "));
  EXPECT_THAT(SpeedLine(end_), Not(HasSubstr("compute")));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
