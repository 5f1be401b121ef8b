#include "runtime/report/console_report.h"

#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string Content(std::FILE* file) {
  std::string text(10000, '\0');
  std::rewind(file);
  text.resize(std::fread(&text[0], 1, text.size(), file));
  return text;
}

class ConsoleReportTest : public ::testing::Test {
 protected:
  ~ConsoleReportTest() override {
    std::fclose(out_);
    std::fclose(err_);
  }

  static RunStarted Run() {
    RunStarted run;
    run.strategy.mutable_train()->set_epochs(5);
    proto::Amp& amp = *run.strategy.mutable_amp();
    amp.mutable_loss_scaling()->set_use_dynamic_loss_scaling(true);
    amp.mutable_loss_scaling()->set_decr_every_n_nan_or_inf(2);
    run.train_samples = 1438;
    run.batch = 64;
    run.step_samples = {64, 30};
    run.steps_per_epoch = 23;
    run.total_steps = 115;
    run.notes = {"note     one"};
    return run;
  }
  template <typename... Events>
  void Tell(bool json, const Events&... events) {
    Console console(out_, err_, /*columns=*/0);
    ConsoleReport report(&console, json);
    RunObserver& observer = report;
    (observer.On(events), ...);
  }

  std::FILE* out_ = std::tmpfile();
  std::FILE* err_ = std::tmpfile();
};

TEST_F(ConsoleReportTest, TellsARunAsItGoesOn) {
  RunStarted run = Run();
  run.resumed = Resumed();
  run.resumed->step = 69;
  run.out = "runs/mnist";
  StepEvent step;
  step.step = 70;
  step.fetches = {{"logits:norm", {12}}};
  SkipEvent skip;
  skip.step = 71;
  skip.first_bad = "fc.w.grad has inf";
  skip.bad_steps = 1;
  RunEnded end;
  end.seconds = end.eval_seconds = 0.1;
  Tell(/*json=*/false, run, step, ProgressEvent(), skip, EvalEvent(),
       WarningEvent{"no room"}, end);
  const std::string err = Content(err_);
  size_t at = 0;
  for (const char* line : {"data     1,438 train", "note     one\n",
                           "resume   ckpt/step-69: ", "epoch 0/5  step 70/115",
                           "fetch    logits:norm 12\n",
                           "step 71  skipped: fc.w.grad has inf; bad 1 of 2, ",
                           "eval 0 ", "warning  no room\n"}) {
    const size_t found = err.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << "\n" << err;
    at = found;
  }
  // Progress comes only where nothing was said for a while.
  EXPECT_EQ(err.find("epoch 0/5"), err.rfind("epoch 0/5"));
  EXPECT_THAT(Content(out_),
              AllOf(StartsWith("done     "), HasSubstr("\nspeed    "),
                    HasSubstr("\nmemory   "), HasSubstr(",ckpt/step-69}")));
}

TEST_F(ConsoleReportTest, NamesTheLastCheckpoint) {
  RunStarted run = Run();
  run.out = "runs/mnist";
  Tell(/*json=*/false, run, CheckpointEvent{23}, CheckpointEvent{46},
       RunEnded());
  EXPECT_THAT(Content(out_), HasSubstr(",ckpt/step-46}"));
}

// Of a run that failed the error says enough.
TEST_F(ConsoleReportTest, ReportsRunsThatEndWell) {
  RunEnded end;
  end.exit_code = 5;
  Tell(/*json=*/false, Run(), end);
  EXPECT_THAT(Content(out_), IsEmpty());
  end.exit_code = 130;
  end.signal = 2;
  Tell(/*json=*/false, Run(), end);
  EXPECT_THAT(Content(out_), StartsWith("done     stopped by signal 2"));
}

TEST_F(ConsoleReportTest, JsonIsOneObjectHoweverItEnds) {
  RunEnded end;
  end.exit_code = 5;
  Tell(/*json=*/true, Run(), end);
  EXPECT_EQ(nlohmann::json::parse(Content(out_))["exit"], 5);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
