#include "runtime/report/metrics_log.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/report/testing/log_files.h"

namespace halftone {
namespace runtime {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

TEST(MetricsLog, NumbersReadBackToTheSameBits) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  StepEvent event = Step(69);
  event.loss = 0.1f + 0.013f;
  event.grad_norm = std::numeric_limits<float>::infinity();
  event.lr = std::nanf("");
  event.times.per_step = {6, 0.5, 4.5, 0.25, 0.125};
  event.fetches = {{"w \"x\"", {1}},
                   {"b", {1, -std::numeric_limits<float>::infinity()}}};
  (*log)->On(event);
  ASSERT_TRUE((*log)->Flush().ok());
  const json read = JsonLines(path)[0];
  EXPECT_EQ(read["event"], "step");
  EXPECT_EQ(read["loss"].get<float>(), event.loss);
  EXPECT_EQ(read["grad_norm"], "inf");
  EXPECT_EQ(read["lr"], "nan");
  EXPECT_EQ(read["ms"], (json{{"step", 6},
                              {"data", 0.5},
                              {"fwd_bwd", 4.5},
                              {"comm", 0.25},
                              {"update", 0.125},
                              {"other", 0.625}}));
  EXPECT_EQ(read["fetches"]["w \"x\""], 1);
  EXPECT_EQ(read["fetches"]["b"], (json{1, "-inf"}));
}

// A device that does not say what takes a step's time.
TEST(MetricsLog, PartsThatAreNotKnown) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  RunStarted run;
  run.parts_known = false;
  (*log)->On(run);
  StepEvent event = Step(1);
  event.times.per_step = {6, 0.5};
  (*log)->On(event);
  ASSERT_TRUE((*log)->Flush().ok());
  const json ms = JsonLines(path)[1]["ms"];
  EXPECT_EQ(ms["other"], 0);
  EXPECT_EQ(ms["device"], 5.5);
}

TEST(MetricsLog, SaysWhatTheMeanLossIsOf) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  StepEvent event = Step(69);
  event.n = 64;
  event.skipped = 2;
  event.not_finite = 1;
  (*log)->On(event);
  ASSERT_TRUE((*log)->Flush().ok());
  NotFiniteEvent loss;
  loss.step = 70;
  loss.loss = std::numeric_limits<float>::infinity();
  loss.in_a_row = 2;
  (*log)->On(loss);
  ASSERT_TRUE((*log)->Flush().ok());
  const std::vector<json> read = JsonLines(path);
  EXPECT_EQ(read[0]["n"], 64);
  EXPECT_EQ(read[0]["skipped"], 2);
  EXPECT_EQ(read[0]["not_finite"], 1);
  EXPECT_EQ(read[1], (json{{"event", "not_finite"},
                           {"step", 70},
                           {"epoch", 0},
                           {"loss", "inf"},
                           {"applied", true},
                           {"in_a_row", 2},
                           {"time", read[1]["time"]}}));
}

TEST(MetricsLog, EachLineHasATime) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->On(RunStarted());
  (*log)->On(Step(1));
  (*log)->On(RunEnded());
  ASSERT_TRUE((*log)->Flush().ok());
  for (const json& line : JsonLines(path)) {
    absl::Time time;
    std::string error;
    ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full,
                                line["time"].get<std::string>(), &time, &error))
        << line << error;
    EXPECT_GT(time, absl::UnixEpoch()) << line;
  }
}

TEST(MetricsLog, HowARunBeginsGoesOnAndEnds) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  RunStarted run;
  run.world_size = 2;
  run.batch = 64;
  run.data = "idx:\"x\"";
  run.resumed = Resumed();
  run.resumed->step = 20;
  (*log)->On(run);
  RestartEvent restart;
  restart.step = 20;
  restart.rank = 1;
  restart.failed_step = 25;
  restart.cause = "signal 9 (SIGKILL)";
  (*log)->On(restart);
  (*log)->On(CheckpointEvent{30, 2});
  RunEnded end;
  end.step = 40;
  end.applied = 39;
  end.signal = 15;
  end.exit_code = 143;
  end.seconds = 2.5;
  (*log)->On(end);
  ASSERT_TRUE((*log)->Flush().ok());
  std::vector<json> lines = JsonLines(path);
  for (json& line : lines) line.erase("time");
  EXPECT_EQ(lines[0]["event"], "run_start");
  EXPECT_EQ(lines[0]["step"], 20);
  EXPECT_EQ(lines[0]["resumed"], true);
  EXPECT_EQ(lines[0]["ranks"], 2);
  EXPECT_EQ(lines[0]["batch_size"], 64);
  EXPECT_EQ(lines[0]["data"], "idx:\"x\"");
  EXPECT_EQ(lines[1], (json{{"event", "restart"},
                            {"step", 20},
                            {"attempt", 1},
                            {"rank", 1},
                            {"failed_step", 25},
                            {"cause", "signal 9 (SIGKILL)"}}));
  EXPECT_EQ(lines[2],
            (json{{"event", "checkpoint"}, {"step", 30}, {"epoch", 2}}));
  EXPECT_EQ(
      lines[3],
      (json{{"event", "end"},
            {"step", 40},
            {"applied", 39},
            {"epochs", 0},
            {"exit", 143},
            {"signal", 15},
            {"seconds",
             {{"run", 2.5}, {"eval", 0}, {"checkpoint", 0}, {"fetch", 0}}}}));
}

TEST(MetricsLog, Exponents) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  StepEvent event = Step(10);
  FetchedValue& fetch = event.fetches.emplace_back();
  fetch.name = "w.grad:exponents";
  fetch.exponents.emplace();
  fetch.exponents->held_in = "f16";
  fetch.exponents->histogram.bins[39] = 7;
  fetch.exponents->histogram.zero = 1;
  fetch.exponents->histogram.flushed = 2;
  fetch.exponents->histogram.overflowed = 3;
  fetch.exponents->histogram.nan = 4;
  fetch.exponents->loss_scaling = 1024;
  fetch.exponents->scales.most = 2048;
  (*log)->On(event);
  ASSERT_TRUE((*log)->Flush().ok());
  std::vector<int> bins(40);
  bins[39] = 7;
  EXPECT_EQ(JsonLines(path)[0]["fetches"]["w.grad:exponents"],
            (json{{"dtype", "f16"},
                  {"bins", bins},
                  {"zero", 1},
                  {"flushed", 2},
                  {"overflowed", 3},
                  {"nan", 4},
                  {"loss_scaling", 1024},
                  {"least_scale", nullptr},
                  {"most_scale", 2048}}));
}

TEST(MetricsLog, ResumeReadsTheScaleEventsBack) {
  const std::string path = NewPath();
  {
    auto log = *MetricsLog::Open(path, -1);
    SkipEvent skip;
    skip.step = 7;
    skip.epoch = 1;
    skip.first_bad = "a \"b\".w.grad has inf";
    skip.scale_before = 1638.4f;
    skip.loss_scaling = 819.2f;
    skip.part = "aux";
    log->On(skip);
    // A skip has a line of its own.
    log->On(ScaleEvent{7, 1, true, skip.first_bad, 1638.4f, 819.2f});
    log->On(ScaleEvent{9, 2, false, "", 819.2f, 1638.4f, "main"});
    log->On(ScaleEvent{21, 3, false, "", 1638.4f, 3276.8f});
    ASSERT_TRUE(log->Flush().ok());
  }
  EXPECT_EQ(JsonLines(path).size(), 3u);
  // As an earlier version wrote it.
  ASSERT_TRUE(WriteFileAtomically(path,
                                  "{\"event\":\"skip\",\"step\":2,\"epoch\":1,"
                                  "\"first_bad\":\"x\",\"bad_steps\":1,"
                                  "\"loss_scaling\":2048}\n" +
                                      *ReadFile(path))
                  .ok());
  auto log = MetricsLog::Open(path, 20);
  ASSERT_TRUE(log.ok()) << log.status();
  const std::vector<ScaleEvent> kept = (*log)->kept_scale_events().Events();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].step, 7);
  EXPECT_EQ(kept[0].epoch, 1);
  EXPECT_TRUE(kept[0].skipped);
  EXPECT_EQ(kept[0].first_bad, "a \"b\".w.grad has inf");
  EXPECT_EQ(kept[0].scale_before, 1638.4f);
  EXPECT_EQ(kept[0].loss_scaling, 819.2f);
  EXPECT_EQ(kept[0].part, "aux");
  EXPECT_EQ(kept[1].part, "main");
  EXPECT_EQ(kept[1].step, 9);
  EXPECT_FALSE(kept[1].skipped);
  EXPECT_EQ(kept[1].loss_scaling, 1638.4f);
}

// The run was killed when its checkpoint was there and had not been told.
TEST(MetricsLog, ResumeTellsOfItsCheckpoint) {
  const std::string path = NewPath();
  {
    auto log = *MetricsLog::Open(path, -1);
    log->On(CheckpointEvent{10, 1});
    log->On(Step(20));
    log->On(CheckpointEvent{200, 1});  // of a run that got further
    ASSERT_TRUE(log->Flush().ok());
  }
  RunStarted run;
  run.resumed = Resumed();
  run.resumed->step = 20;
  run.resumed->epoch = 3;
  for (int resumes = 1; resumes <= 2; ++resumes) {
    auto log = *MetricsLog::Open(path, 20);
    log->On(run);
    ASSERT_TRUE(log->Flush().ok());
    const std::vector<json> lines = JsonLines(path);
    ASSERT_EQ(lines.size(), 3u + resumes);
    EXPECT_EQ(lines[1]["event"], "step");
    EXPECT_EQ(lines[2]["event"], "checkpoint");
    EXPECT_EQ(lines[2]["step"], 20);
    EXPECT_EQ(lines[2]["epoch"], 2);
    EXPECT_EQ(lines[3]["event"], "run_start");
  }
}

TEST(ScaleRecorder, KeepsTheLast) {
  ScaleRecorder recorder;
  for (int64_t step = 1; step <= 1003; ++step) {
    recorder.Add({step, 1, false, "", 1, 2});
  }
  const std::vector<ScaleEvent> events = recorder.Events();
  ASSERT_EQ(events.size(), 1000u);
  EXPECT_EQ(events.front().step, 4);
  EXPECT_EQ(events.back().step, 1003);
}

TEST(MetricsLog, ResumeCutsBackToTheStep) {
  const std::string path = NewPath();
  {
    auto log = *MetricsLog::Open(path, -1);
    for (int64_t step : {10, 20, 30}) log->On(Step(step));
    SkipEvent skip;
    skip.step = 25;
    log->On(skip);
    EvalEvent eval;
    eval.step = 20;
    eval.metrics = {{"top1", 0.975, 350, 359}};
    log->On(eval);
    log->On(CheckpointEvent{20, 1});
    RunEnded end;
    end.step = 30;
    log->On(end);
    ASSERT_TRUE(log->Flush().ok());
  }
  ASSERT_TRUE(
      WriteFileAtomically(path, *ReadFile(path) + "{\"event\":\"st").ok());
  auto log = MetricsLog::Open(path, 20);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->On(Step(21));
  ASSERT_TRUE((*log)->Flush().ok());
  std::vector<int64_t> steps;
  for (const json& event : JsonLines(path)) steps.push_back(event["step"]);
  EXPECT_THAT(steps, ElementsAre(10, 20, 20, 20, 21));
  EXPECT_EQ(JsonLines(path)[2]["metrics"]["top1"],
            (json{{"value", 0.975}, {"correct", 350}, {"total", 359}}));
}

// A prepared run directory: what the link leads to is neither read nor written.
TEST(MetricsLog, ALinkIsNotFollowed) {
  const std::string directory = NewPath();
  std::filesystem::create_directory(directory);
  const std::string other = directory + "/other", path = directory + "/m.jsonl";
  ASSERT_TRUE(WriteFileAtomically(other, "{\"step\":1}\n").ok());
  std::filesystem::create_symlink(other, path);
  EXPECT_FALSE(MetricsLog::Open(path, 20).ok());
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->On(Step(1));
  ASSERT_TRUE((*log)->Flush().ok());
  EXPECT_EQ(*ReadFile(other), "{\"step\":1}\n");
  EXPECT_EQ(JsonLines(path).size(), 1u);
}

TEST(MetricsLog, ADirectoryThatIsNotThereIsAnError) {
  EXPECT_FALSE(MetricsLog::Open("/nowhere/metrics.jsonl", -1).ok());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
