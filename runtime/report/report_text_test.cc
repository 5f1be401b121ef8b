#include "runtime/report/report_text.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/report/epoch_line.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The digits on two ranks, as far as the lines need them.
class ReportText : public ::testing::Test {
 protected:
  ReportText() {
    run_.strategy.mutable_train()->set_epochs(5);
    run_.train_samples = 1438;
    run_.test_samples = 359;
    run_.world_size = 2;
    run_.batch = 64;
    run_.step_samples = {64, 30};
    run_.steps_per_epoch = 23;
    run_.total_steps = 115;
    run_.images = true;
    run_.metrics = {"top1"};
  }

  RunStarted run_;
  RunEnded end_;
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
  EXPECT_EQ(DataLine(run_),
            "data     1,438 train, 359 test; batch 64 = 2 x 32, last of an "
            "epoch 30 = 2 x 15; 23 steps x 5 epochs = 115");
  run_.test_samples.reset();
  run_.strategy.mutable_train()->set_epochs(1);
  run_.world_size = 1;
  run_.step_samples = {1438};
  run_.steps_per_epoch = 1;
  EXPECT_EQ(DataLine(run_),
            "data     1,438 train, no test split: nothing is evaluated; batch "
            "1,438; 1 step x 1 epoch = 1");
}

TEST_F(ReportText, Resume) {
  run_.strategy.mutable_amp()->set_level("O2");
  run_.strategy.mutable_train()->set_seed(1);
  run_.threads = 2;
  Resumed was;
  was.step = 70;
  was.applied = 69;
  was.epoch = 4;
  was.sample = 64;
  was.loss_scaling = 32768;
  was.good_steps = 12;
  was.seed = 1;
  was.threads = 2;
  was.world_size = 2;
  const std::string line =
      "resume   ckpt/step-70: epoch 4 sample 64, 69 applied, scale 32768 good "
      "12; ";
  EXPECT_EQ(ResumeLine(run_, was), line +
                                       "same program and 2 ranks: bit for "
                                       "bit");
  was.fresh_scale = true;
  EXPECT_EQ(ResumeLine(run_, was),
            "resume   ckpt/step-70: epoch 4 sample 64, 69 applied; same "
            "program and 2 ranks: bit for bit");
  was.fresh_scale = false;
  was.world_size = 4;
  EXPECT_EQ(ResumeLine(run_, was),
            line + "2 ranks: same samples, equal to rounding");
  run_.by_ranks = {"this", "that"};
  EXPECT_EQ(ResumeLine(run_, was),
            line +
                "2 ranks instead of 4: same samples, other steps: this; "
                "that");
  run_.by_ranks.clear();
  run_.strategy.mutable_dist()->set_virtual_shards(8);
  EXPECT_EQ(ResumeLine(run_, was),
            line + "same program, 2 ranks: bit for bit, 8 virtual shards");
  run_.strategy.clear_dist();
  was.fingerprint = "other";
  was.level = "O1";
  was.seed = 3;
  was.tuning_hash = "other";
  was.threads = 4;
  run_.batch = 60;
  run_.deterministic = false;
  EXPECT_EQ(ResumeLine(run_, was),
            line +
                "2 ranks; another batch size: 4 samples of this epoch taken "
                "twice; another program (O2 instead of O1); another seed (1 "
                "instead of 3); not bitwise: another tuning table; not "
                "bitwise: 2 threads per rank instead of 4; not bitwise: "
                "--no-deterministic");
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
  EventTimes& times = event.times;
  times.per_step = {5.74, 0.0004, 4.91, 0.62, 0.2};
  times.samples_per_second = 11234;
  EXPECT_EQ(EpochLine(run_, event, 0),
            "epoch 3/5  step 69/115  loss 0.113  lr 0.01  scale 32768 good 45  "
            "skipped 1  |g| 1.9  11.2k img/s  5.74 ms = data 0 + fwd/bwd 4.91 "
            "+ comm 0.62 + update 0.2 + other 0.01  eta 0 s");
  run_.images = false;
  event.loss = 12345;
  times.samples_per_second = 2.31;
  times.per_step = {3340, 3, 3000, 300, 37};
  EXPECT_EQ(EpochLine(run_, event, 0),
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
  EventTimes& times = event.times;
  times.per_step = {5.74, 0.0004, 4.91, 0.62, 0.2};
  times.samples_per_second = 11234;
  size_t before = 0;
  for (int room = 34; room < 200; ++room) {
    const std::string line = EpochLine(run_, event, room);
    EXPECT_LE(line.size(), static_cast<size_t>(room));
    EXPECT_GE(line.size(), before);
    before = line.size();
    EXPECT_THAT(line, AllOf(HasSubstr("loss 0.113"), HasSubstr("11.2k img/s"),
                            HasSubstr("eta 0 s")));
  }
  EXPECT_EQ(EpochLine(run_, event, 79),
            "epoch 3/5  step 69/115  loss 0.113  lr 0.01  scale 32768  11.2k "
            "img/s  eta 0 s");
  // Skipped steps are news.
  event.applied = 60;
  EXPECT_THAT(EpochLine(run_, event, 79), HasSubstr("skipped 9"));
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
  event.scale_before = event.loss_scaling = 32768;
  EXPECT_EQ(SkipLine(event, 2),
            "step 70  skipped: conv2.w.grad has inf; bad 1 of 2, scale stays "
            "32768");
  EXPECT_EQ(SkipLine(event, 0),
            "step 70  skipped: conv2.w.grad has inf; bad 1, scale stays "
            "32768");
  event.loss_scaling = 16384;
  EXPECT_EQ(SkipLine(event, 2),
            "step 70  skipped: conv2.w.grad has inf; scale 32768 -> 16384");
  event.part = "aux";
  EXPECT_EQ(SkipLine(event, 2),
            "step 70  skipped: conv2.w.grad has inf; scale of aux 32768 -> "
            "16384");
}

TEST(SkipLine, AtTheFloor) {
  SkipEvent event;
  event.step = 33;
  event.first_bad = "conv1.w.grad has nan";
  event.loss_scaling = 1;
  EXPECT_EQ(SkipLine(event, 2),
            "step 33  skipped: conv1.w.grad has nan; bad 2 of 2, scale stays "
            "at its floor 1");
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
  EvalEvent eval;
  eval.metrics = {{"top1", 0.975, 350, 359}, {"top5", 1, 359, 359}};
  EXPECT_EQ(MetricsText({"top5", "top1"}, eval),
            "top5 100.0 % (359/359), top1 97.5 % (350/359)");
  eval.metrics.clear();
  eval.loss = 0.25;
  EXPECT_EQ(MetricsText({"top5", "top1"}, eval), "eval loss 0.25");
}

TEST_F(ReportText, Done) {
  end_.epoch = 5;
  end_.step = 115;
  end_.applied = 114;
  end_.seconds = 2.1;
  end_.first_loss = 2.308;
  end_.last_loss = 0.0311;
  end_.loss_scaling = 32768;
  end_.eval = EvalEvent();
  end_.eval->step = 115;
  end_.eval->metrics = {{"top1", 0.975, 350, 359}};
  end_.best_epoch = 5;
  EXPECT_EQ(DoneLine(run_, end_),
            "done     5 epochs, 114 steps applied, 1 skipped, 2.1 s; loss 2.31 "
            "-> 0.0311; scale 32768; top1 97.5 % (350/359), best at epoch 5");
  // Not of the state that the run ends with.
  end_.eval->step = 92;
  end_.epoch = end_.applied = 1;
  end_.signal = 15;
  EXPECT_EQ(DoneLine(run_, end_),
            "done     stopped by signal 15 in epoch 2, 1 step applied, 114 "
            "skipped, 2.1 s; loss 2.31 -> 0.0311; scale 32768");
}

TEST_F(ReportText, Speed) {
  EXPECT_EQ(SpeedLine(run_, end_), "");  // it did nothing
  end_.eval_seconds = end_.seconds = 1;
  EXPECT_THAT(SpeedLine(run_, end_), StartsWith("speed    time: compute 0 %"));
  end_.speed = {11636, 5.5, 5.5, 3340};
  end_.spent = {3356.5, 21.5, 1907.5, 704.5, 21.5};
  end_.eval_seconds = 0.2;
  end_.checkpoint_seconds = 0.1;
  end_.seconds = 4;
  EXPECT_EQ(SpeedLine(run_, end_),
            "speed    11.6k img/s, step median 5.5 ms p95 5.5, first 3340 ms "
            "left out; time: compute 48 %, exposed comm 18, data 1, eval 5, "
            "checkpoint 2, other 26");
  // A device that says nothing of a step's parts.
  run_.parts_known = false;
  EXPECT_THAT(SpeedLine(run_, end_), HasSubstr("left out; time: device "));
  EXPECT_THAT(SpeedLine(run_, end_), Not(HasSubstr("compute")));
}

TEST_F(ReportText, Reading) {
  end_.seconds = 10;
  end_.reading_workers = 2;
  end_.samples_read = 900;
  end_.reading_seconds = 2;
  EXPECT_EQ(ReadingLine(run_, end_),
            "data     read at 450 img/s per worker, 2 workers");
  run_.left_out = 1;
  EXPECT_EQ(ReadingLine(run_, end_),
            "data     read at 450 img/s per worker, 2 workers; 1 broken sample "
            "left out");
  end_.reading_seconds = 0.09;
  EXPECT_EQ(ReadingLine(run_, end_), "data     1 broken sample left out");
  run_.left_out = 0;
  EXPECT_EQ(ReadingLine(run_, end_), "");
}

TEST_F(ReportText, Memory) {
  end_.peak_bytes = 3 << 20;
  end_.planned_bytes = 2 << 20;
  EXPECT_EQ(MemoryLine(run_, end_, -1, true),
            "memory   peak 3.0 MiB per rank, planned 2.0 MiB; ranks bitwise "
            "equal");
  run_.world_size = 1;
  run_.out = "runs/mnist";
  EXPECT_EQ(MemoryLine(run_, end_, -1, true),
            "memory   peak 3.0 MiB per rank, planned 2.0 MiB; written: "
            "runs/mnist/{summary.json,metrics.jsonl,events.out.tfevents.*}");
  EXPECT_THAT(MemoryLine(run_, end_, -1, /*has_summary=*/false),
              EndsWith("written: runs/mnist/{metrics.jsonl,"
                       "events.out.tfevents.*}"));
  EXPECT_THAT(MemoryLine(run_, end_, 115, true),
              EndsWith("events.out.tfevents.*,ckpt/step-115}"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
