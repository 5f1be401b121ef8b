#include "runtime/report/run_report.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;

// A log whose disk may be full.
class Log : public RunObserver {
 public:
  Log(const bool* full, std::vector<std::string>* told)
      : full_(*full), told_(*told) {}
  void On(const StepEvent& event) override {
    told_.push_back(absl::StrCat("step ", event.step));
  }
  void On(const WarningEvent& event) override { told_.push_back(event.text); }
  void On(const RunEnded& end) override {
    told_.push_back(absl::StrCat("exit ", end.exit_code));
  }
  absl::Status Flush() override {
    return full_ ? ModelError("disk full") : absl::OkStatus();
  }

 private:
  const bool& full_;
  std::vector<std::string>& told_;
};

class RunReportTest : public ::testing::Test {
 protected:
  RunReportTest() { report_.Add(std::make_unique<Log>(&full_, &told_)); }

  bool full_ = false;
  std::vector<std::string> told_;
  RunReport report_;
};

TEST_F(RunReportTest, AFullDiskIsSaidOnceAndSoIsItsEnd) {
  StepEvent event;
  for (const bool full : {false, true, true, false, false}) {
    full_ = full;
    ++event.step;
    report_.Emit(event);
    report_.Flush();
  }
  EXPECT_THAT(
      told_,
      ElementsAre("step 1", "step 2",
                  "disk full; training goes on, and lines wait for room",
                  "step 3", "step 4",
                  "the lines that waited for room are written", "step 5"));
}

TEST_F(RunReportTest, AFullDiskAtTheEndIsTheRunsError) {
  EXPECT_TRUE(report_.Finish(RunEnded(), absl::OkStatus()).ok());
  full_ = true;
  const auto status = report_.Finish(RunEnded(), absl::OkStatus());
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel);
  full_ = false;
  EXPECT_FALSE(report_.Finish(RunEnded(), ModelError("no trace")).ok());
  // One that ended badly for another reason did so for that.
  RunEnded diverged;
  diverged.exit_code = 5;
  EXPECT_FALSE(report_.Finish(diverged, ModelError("no trace")).ok());
  EXPECT_THAT(told_, ElementsAre("exit 0", "exit 1", "exit 1", "exit 5"));
}

// Some take little of what there is.
TEST_F(RunReportTest, AnEventReachesWhoTakesIt) {
  class Warnings : public RunObserver {
   public:
    explicit Warnings(std::vector<std::string>* told) : told_(*told) {}
    void On(const WarningEvent& event) override {
      told_.push_back("also " + event.text);
    }

   private:
    std::vector<std::string>& told_;
  };
  report_.Add(std::make_unique<Warnings>(&told_));
  report_.Emit(StepEvent());
  report_.Emit(WarningEvent{"no room"});
  EXPECT_THAT(told_, ElementsAre("step 0", "no room", "also no room"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
